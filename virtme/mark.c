// SPDX-License-Identifier: GPL-2.0
/* mark: the next part of the run begins, for count.c. */
int main(void)
{
	__asm__ volatile("nopl 0x6c6f7774(%rax)");
	return 0;
}
