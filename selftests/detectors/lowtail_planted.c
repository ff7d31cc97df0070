// SPDX-License-Identifier: GPL-2.0
/*
 * One fault for each detector of a debug kernel: the name of one, written to the parameter `fault`, commits it once.
 */

#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/sysfs.h>

/* What the compiler must not see to be pointless is stored here. */
static volatile int sink;

static DEFINE_SPINLOCK(spin);
static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);
static int value;
static int __rcu *shared = (int __rcu *)&value;

static int out_of_bounds(void)
{
	size_t size = 13;
	char *p = kmalloc(size, GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	OPTIMIZER_HIDE_VAR(size);
	WRITE_ONCE(p[size], 1);
	kfree(p);
	return 0;
}

static int use_after_free(void)
{
	char *p = kzalloc(32, GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	kfree(p);
	OPTIMIZER_HIDE_VAR(p);
	sink = READ_ONCE(*p);
	return 0;
}

static int shift(void)
{
	int by = 40;

	OPTIMIZER_HIDE_VAR(by);
	sink = 1 << by;
	return 0;
}

static int list(void)
{
	LIST_HEAD(head);
	struct list_head entry;

	list_add(&entry, &head);
	list_del(&entry);
	list_del(&entry);
	return 0;
}

static int sleep_in_atomic(void)
{
	void *p;

	spin_lock(&spin);
	p = kmalloc(32, GFP_KERNEL);
	spin_unlock(&spin);
	kfree(p);
	return 0;
}

static int rcu(void)
{
	sink = *rcu_dereference(shared);
	return 0;
}

/* Several, since the address of the last may stay in a register or on a stack. */
static int leak(void)
{
	int i;

	for (i = 0; i < 16; i++) {
		void *p = kmalloc(77, GFP_KERNEL);

		OPTIMIZER_HIDE_VAR(p);
		if (!p)
			return -ENOMEM;
	}
	return 0;
}

static int inversion(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);

	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
	return 0;
}

static const struct {
	const char *name;
	int (*commit)(void);
} faults[] = {
	{ "out-of-bounds", out_of_bounds },
	{ "use-after-free", use_after_free },
	{ "shift", shift },
	{ "list", list },
	{ "sleep", sleep_in_atomic },
	{ "rcu", rcu },
	{ "leak", leak },
	{ "inversion", inversion },
};

static int commit(const char *name, const struct kernel_param *kp)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(faults); i++)
		if (sysfs_streq(name, faults[i].name))
			return faults[i].commit();
	return -EINVAL;
}

static const struct kernel_param_ops fault_ops = { .set = commit };
module_param_cb(fault, &fault_ops, NULL, 0200);
MODULE_PARM_DESC(fault, "the fault to commit now");

MODULE_DESCRIPTION("lowtail's tests: faults for a debug kernel's detectors");
MODULE_LICENSE("GPL");
