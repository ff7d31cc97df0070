// SPDX-License-Identifier: GPL-2.0
/*
 * Test-only: takes tcp_push() out of the filters of autocork_policy's ftrace hooks while it is
 * loaded, so that ftrace no longer calls the hook although it is registered. Remove it before
 * autocork_policy.
 *
 * The hooks are found on ftrace's list, whose address is a parameter, out of /proc/kallsyms.
 */
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/module.h>
#include <linux/string.h>

static unsigned long list;
module_param(list, ulong, 0);
MODULE_PARM_DESC(list, "address of ftrace_ops_list");

static struct ftrace_ops *hooks[4];
static int count;

static bool is_ours(struct ftrace_ops *ops)
{
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol(name, (unsigned long)ops->func);
	return strstr(name, "[autocork_policy]");
}

static int __init lowtail_unhook_init(void)
{
	struct ftrace_ops *ops;
	int i, err;

	if (!list)
		return -EINVAL;
	/* The list ends with an entry that has no next one. */
	rcu_read_lock();
	for (ops = rcu_dereference(*(struct ftrace_ops __rcu **)list); ops && count < ARRAY_SIZE(hooks);
	     ops = rcu_dereference(ops->next))
		if (is_ours(ops))
			hooks[count++] = ops;
	rcu_read_unlock();
	if (!count)
		return -ENOENT;

	for (i = 0; i < count; i++) {
		char name[] = "tcp_push";

		err = ftrace_set_notrace(hooks[i], name, strlen(name), 0);
		if (err) {
			while (i--)
				ftrace_set_notrace(hooks[i], NULL, 0, 1);
			return err;
		}
	}
	return 0;
}

static void __exit lowtail_unhook_exit(void)
{
	while (count--)
		ftrace_set_notrace(hooks[count], NULL, 0, 1);
}

module_init(lowtail_unhook_init);
module_exit(lowtail_unhook_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Test-only: ftrace no longer calls autocork_policy's hook on tcp_push()");
