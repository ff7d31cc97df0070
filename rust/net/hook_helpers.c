// SPDX-License-Identifier: GPL-2.0
/*
 * C for what Rust cannot call in a function hook: per-CPU counters, work, and the inline functions
 * of network namespaces.
 */
#include <linux/percpu.h>
#include <linux/proc_fs.h>
#include <linux/seq_file_net.h>
#include <linux/sysctl.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "helpers.h"

/* In C, since the table is const from 7.3 on and was not before. */
struct ctl_table_header *lowtail_register_sysctls(struct net *net, const char *path,
						  struct ctl_table *table, size_t n)
{
	return register_net_sysctl_sz(net, path, table, n);
}

void *lowtail_net_generic(const struct net *net, unsigned int id)
{
	return net_generic(net, id);
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
