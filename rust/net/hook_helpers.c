// SPDX-License-Identifier: GPL-2.0
/*
 * C for what Rust cannot call in a function hook: the saved registers, per-CPU counters, work, and
 * the inline functions of network namespaces.
 */
#include <linux/ftrace.h>
#include <linux/percpu.h>
#include <linux/proc_fs.h>
#include <linux/seq_file_net.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "helpers.h"

unsigned long lowtail_fregs_argument(struct ftrace_regs *fregs, unsigned int n)
{
	return ftrace_regs_get_argument(fregs, n);
}

/*
 * The registers that ftrace saved are loaded again before the function goes on, so writing one is
 * writing the argument. Only the first six (x86-64) or eight (arm64) travel in registers.
 */
void lowtail_fregs_set_argument(struct ftrace_regs *fregs, unsigned int n, unsigned long value)
{
#if defined(CONFIG_X86_64)
	struct pt_regs *regs = &arch_ftrace_regs(fregs)->regs;

	switch (n) {
	case 0:
		regs->di = value;
		break;
	case 1:
		regs->si = value;
		break;
	case 2:
		regs->dx = value;
		break;
	case 3:
		regs->cx = value;
		break;
	case 4:
		regs->r8 = value;
		break;
	case 5:
		regs->r9 = value;
		break;
	}
#elif defined(CONFIG_ARM64)
	if (n < 8)
		arch_ftrace_regs(fregs)->regs[n] = value;
#else
#error "autocork_policy: this architecture's ftrace_regs are not known; x86-64 and arm64 are"
#endif
}

void *lowtail_net_generic(const struct net *net, unsigned int id)
{
	return net_generic(net, id);
}

/* Somebody holds a reference to @net: its state will not go before an RCU grace period. */
bool lowtail_net_is_live(const struct net *net)
{
	return check_net(net);
}

struct net *lowtail_seq_file_net(struct seq_file *seq)
{
	return seq_file_single_net(seq);
}

bool lowtail_proc_create(struct net *net, const char *name, int (*show)(struct seq_file *, void *))
{
	return proc_create_net_single(name, 0444, net->proc_net, show, NULL);
}

void lowtail_proc_remove(struct net *net, const char *name)
{
	remove_proc_entry(name, net->proc_net);
}

u64 __percpu *lowtail_percpu_alloc(unsigned int n)
{
	return __alloc_percpu(n * sizeof(u64), L1_CACHE_BYTES);
}

void lowtail_percpu_free(u64 __percpu *counters)
{
	free_percpu(counters);
}

void lowtail_percpu_inc(u64 __percpu *counters, unsigned int i)
{
	this_cpu_inc(counters[i]);
}

u64 lowtail_percpu_sum(u64 __percpu *counters, unsigned int i)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(counters, cpu)[i]);
	return sum;
}

void lowtail_work_init(struct delayed_work *work, work_func_t func)
{
	INIT_DELAYED_WORK(work, func);
}

void lowtail_work_schedule(struct delayed_work *work, unsigned int msecs)
{
	queue_delayed_work(system_power_efficient_wq, work, msecs_to_jiffies(msecs));
}
