// SPDX-License-Identifier: GPL-2.0
/*
 * turns: preloaded into QEMU, it makes the CPU's thread and the main loop take turns.
 *
 * In virtual time with -icount sleep=off there are two threads that matter. The CPU's thread runs the
 * guest; when the guest goes idle it wakes the main loop and waits, and the main loop moves virtual
 * time to the next timer. But the main loop also wakes for other reasons, at moments that are the
 * host's. It then asks whether the CPU is halted, which it sees as soon as the guest has executed its
 * HLT, and moves virtual time from a clock in which that thread's last instructions are not counted
 * yet: virtual time jumps too far by so many nanoseconds, and the run goes its own way from there.
 *
 * So the main loop is let out of its poll only while the CPU's thread waits. What the main loop does
 * by itself meanwhile (bottom halves, files that became readable) happens at idle too, and no longer
 * when the host's scheduler would have it.
 *
 * The CPU's thread is the one that waits for a condition and is not the main one. A guest that is not
 * idle for PATIENCE seconds of the host's time (it crashed, or powers off by ACPI and spins) lets the
 * main loop go on nevertheless, which has to see a shutdown or a signal.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The kernel's signal set, in bytes. */
#define SIGSET 8

/* Seconds. */
#define PATIENCE 30

/* 1 while the CPU's thread waits and nobody has woken it. */
static int cpu_waits;
/* What it waits for, and QEMU's big lock, which it gives up meanwhile. */
static pthread_cond_t *cpu_cond;
static pthread_mutex_t *big_lock;

static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *);
static int (*real_broadcast)(pthread_cond_t *);
static int (*real_signal)(pthread_cond_t *);

static int in_main_thread(void)
{
	return syscall(SYS_gettid) == getpid();
}

/* The versions in which a condition is what pthread.h says; each architecture has one of them. */
static void *find(const char *name)
{
	static const char *const versions[] = { "GLIBC_2.3.2", "GLIBC_2.17" };
	void *found;

	for (unsigned int i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		found = dlvsym(RTLD_NEXT, name, versions[i]);
		if (found)
			return found;
	}
	abort();
}

__attribute__((constructor)) static void begin(void)
{
	real_wait = find("pthread_cond_wait");
	real_broadcast = find("pthread_cond_broadcast");
	real_signal = find("pthread_cond_signal");
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	int ret;

	if (in_main_thread())
		return real_wait(cond, mutex);

	/* The main loop cannot go on before the lock is released in there. */
	__atomic_store_n(&big_lock, mutex, __ATOMIC_RELAXED);
	__atomic_store_n(&cpu_cond, cond, __ATOMIC_RELAXED);
	__atomic_store_n(&cpu_waits, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &cpu_waits, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	ret = real_wait(cond, mutex);
	__atomic_store_n(&cpu_waits, 0, __ATOMIC_RELEASE);
	return ret;
}

/* Woken is as good as running, though the host may take its time to run it. */
static void woken(const pthread_cond_t *cond)
{
	if (cond == __atomic_load_n(&cpu_cond, __ATOMIC_RELAXED))
		__atomic_store_n(&cpu_waits, 0, __ATOMIC_RELEASE);
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
	woken(cond);
	return real_broadcast(cond);
}

int pthread_cond_signal(pthread_cond_t *cond)
{
	woken(cond);
	return real_signal(cond);
}

static int holds_big_lock(void)
{
	const pthread_mutex_t *lock = __atomic_load_n(&big_lock, __ATOMIC_RELAXED);

	return lock && __atomic_load_n(&lock->__data.__owner, __ATOMIC_RELAXED) == getpid();
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	const struct timespec patience = { .tv_sec = PATIENCE };
	struct timespec left;
	int ret, saved;

	if (timeout)
		left = *timeout;
	ret = syscall(SYS_ppoll, fds, n, timeout ? &left : NULL, mask, SIGSET);
	saved = errno;
	/* While it holds the lock (it waits for a drive, or ends) the CPU could not take its turn. */
	if (in_main_thread() && !holds_big_lock())
		while (!__atomic_load_n(&cpu_waits, __ATOMIC_ACQUIRE) &&
		       (syscall(SYS_futex, &cpu_waits, FUTEX_WAIT_PRIVATE, 0, &patience, NULL, 0) == 0 ||
			errno != ETIMEDOUT))
			;
	errno = saved;
	return ret;
}
