// SPDX-License-Identifier: GPL-2.0
/*
 * count.c: a QEMU plugin that counts the guest's instructions, by address and by part of the run.
 *
 *   -plugin count.so,out=FILE
 *
 * A part begins with each execution of the instruction of mark.c; the first
 * part, before any mark, is not counted. At the guest's end FILE has a line for each block of
 * code and part:
 *
 *   PART ADDRESS INSTRUCTIONS
 *
 * with the address in hexadecimal and the instructions that were executed there, over all
 * executions of the block. A block ends at a branch, so it lies in one function. One that a fault
 * or an interrupt cut short counts as whole: with -icount that is rare, as interrupts come between
 * blocks. Virtual time does not see the counting.
 *
 * Debian packs no header for plugins; what is used of the interface is declared here as QEMU's
 * documentation gives it ("QEMU TCG Plugins", API version 2 to 5), and QEMU refuses a plugin whose
 * version it does not know.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_info_t;
typedef uint64_t qemu_plugin_id_t;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t idx);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *dest, size_t len);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   void (*cb)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  void (*cb)(unsigned int vcpu, void *data),
					  enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*cb)(unsigned int vcpu, void *data),
					    enum qemu_plugin_cb_flags flags, void *data);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, void (*cb)(qemu_plugin_id_t, void *),
				    void *data);

__attribute__((visibility("default"))) int qemu_plugin_version = 2;

/* nopl 0x6c6f7774(%rax): no compiler emits this displacement. */
static const uint8_t mark_insn[] = { 0x0f, 0x1f, 0x80, 0x74, 0x77, 0x6f, 0x6c };

enum { PARTS = 64 };

struct block {
	struct block *next;
	uint64_t address;
	uint64_t insns;
	uint64_t runs[PARTS];
};

static struct block *blocks;
static unsigned int part;
static const char *out;

static void block_runs(unsigned int vcpu, void *data)
{
	struct block *block = data;

	block->runs[part]++;
}

static void mark_runs(unsigned int vcpu, void *data)
{
	if (part + 1 < PARTS)
		part++;
}

static void block_made(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct block *block = calloc(1, sizeof(*block));
	uint8_t bytes[sizeof(mark_insn)];
	struct qemu_plugin_insn *insn;
	size_t i;

	if (!block) {
		perror("count.so");
		abort();
	}
	block->address = qemu_plugin_tb_vaddr(tb);
	block->insns = qemu_plugin_tb_n_insns(tb);
	block->next = blocks;
	blocks = block;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, block_runs, QEMU_PLUGIN_CB_NO_REGS, block);

	for (i = 0; i < block->insns; i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		if (qemu_plugin_insn_data(insn, bytes, sizeof(bytes)) == sizeof(mark_insn) &&
		    !memcmp(bytes, mark_insn, sizeof(mark_insn)))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, mark_runs,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
}

static void guest_ended(qemu_plugin_id_t id, void *data)
{
	FILE *file = fopen(out, "w");
	const struct block *block;
	unsigned int i;

	if (!file) {
		perror(out);
		return;
	}
	for (block = blocks; block; block = block->next)
		for (i = 1; i <= part; i++)
			if (block->runs[i])
				fprintf(file, "%u %llx %llu\n", i,
					(unsigned long long)block->address,
					(unsigned long long)(block->runs[i] * block->insns));
	if (fclose(file))
		perror(out);
}

__attribute__((visibility("default"))) int
qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc, char **argv)
{
	if (argc != 1 || strncmp(argv[0], "out=", 4)) {
		fprintf(stderr, "count.so: usage: -plugin count.so,out=FILE\n");
		return -1;
	}
	out = strdup(argv[0] + 4);
	qemu_plugin_register_vcpu_tb_trans_cb(id, block_made);
	qemu_plugin_register_atexit_cb(id, guest_ended, NULL);
	return 0;
}
