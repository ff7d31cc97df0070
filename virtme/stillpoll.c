// SPDX-License-Identifier: GPL-2.0
/*
 * stillpoll: a preloaded ppoll() for QEMU's main loop in virtual time.
 *
 * With -icount sleep=off the CPU's thread wakes the main loop each time the guest goes idle, and the
 * main loop moves virtual time to the next timer. But the main loop also wakes by itself: it takes
 * the time to the guest's next timer for a time of the host's. If that falls between the guest's HLT
 * and the moment the CPU's thread has accounted for its last instructions, virtual time is moved from
 * a clock that is some instructions old, and the run differs from the one before by that many
 * nanoseconds. So short time-outs are made long here: the main loop sleeps until it is woken.
 * They are not made endless, in case some device does need one.
 *
 * This is the likely cause of what was seen (shifts of 1 to 5 ns), read from QEMU's sources and not
 * proven. T0 differed without this and did not with it in the few pairs that were tried; T4 still
 * differs, also with both threads on one CPU under SCHED_BATCH. So this is not the whole of it.
 */

#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Seconds; only a wake-up that nobody sent would be noticed to take this long. */
#define LONG_ENOUGH 2

/* The kernel's signal set, in bytes. */
#define SIGSET 8

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	struct timespec t;

	if (timeout) {
		t = *timeout;
		/* No time at all is a question, not a wait. */
		if ((t.tv_sec || t.tv_nsec) && t.tv_sec < LONG_ENOUGH)
			t = (struct timespec){ .tv_sec = LONG_ENOUGH };
	}
	return syscall(SYS_ppoll, fds, n, timeout ? &t : NULL, mask, SIGSET);
}
