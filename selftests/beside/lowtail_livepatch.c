// SPDX-License-Identifier: GPL-2.0
/*
 * Test-only: a livepatch of tcp_push() that does what the kernel's does (7.3), and counts its calls.
 *
 * Two functions that it calls are not exported. Their addresses are parameters, out of
 * /proc/kallsyms, and static calls make direct calls of them, as a livepatch's relocations would.
 */
#include <linux/livepatch.h>
#include <linux/module.h>
#include <linux/static_call.h>
#include <net/tcp.h>

static unsigned long mark_push, push_frames;
module_param(mark_push, ulong, 0);
MODULE_PARM_DESC(mark_push, "address of tcp_mark_push");
module_param(push_frames, ulong, 0);
MODULE_PARM_DESC(push_frames, "address of __tcp_push_pending_frames");

static atomic_t calls;
module_param_named(calls, calls.counter, int, 0444);
MODULE_PARM_DESC(calls, "how often the function has run");

DEFINE_STATIC_CALL_NULL(mark_push, tcp_mark_push);
DEFINE_STATIC_CALL_NULL(push_frames, __tcp_push_pending_frames);

/* tcp_should_autocork(). */
static bool should_autocork(struct sock *sk, struct sk_buff *skb, int size_goal)
{
	return skb->len < size_goal &&
	       READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_autocorking) &&
	       !tcp_rtx_queue_empty(sk) &&
	       refcount_read(&sk->sk_wmem_alloc) > skb->truesize &&
	       tcp_skb_can_collapse_to(skb);
}

/* tcp_push(), with forced_push() and tcp_mark_urg() written out. */
static void livepatched_tcp_push(struct sock *sk, int flags, int mss_now, int nonagle,
				 int size_goal)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct sk_buff *skb;

	atomic_inc(&calls);
	skb = tcp_write_queue_tail(sk);
	if (!skb)
		return;
	if (!(flags & MSG_MORE) || after(tp->write_seq, tp->pushed_seq + (tp->max_window >> 1)))
		static_call_cond(mark_push)(tp, skb);
	if (flags & MSG_OOB)
		tp->snd_up = tp->write_seq;

	if (should_autocork(sk, skb, size_goal)) {
		if (!test_bit(TSQ_THROTTLED, &sk->sk_tsq_flags)) {
			NET_INC_STATS(sock_net(sk), LINUX_MIB_TCPAUTOCORKING);
			set_bit(TSQ_THROTTLED, &sk->sk_tsq_flags);
			smp_mb__after_atomic();
		}
		if (refcount_read(&sk->sk_wmem_alloc) > skb->truesize)
			return;
	}
	if (flags & MSG_MORE)
		nonagle = TCP_NAGLE_CORK;
	static_call_cond(push_frames)(sk, mss_now, nonagle);
}

static struct klp_func funcs[] = {
	{ .old_name = "tcp_push", .new_func = livepatched_tcp_push },
	{ }
};

static struct klp_object objs[] = {
	{ .funcs = funcs },
	{ }
};

static struct klp_patch patch = { .mod = THIS_MODULE, .objs = objs };

static int __init lowtail_livepatch_init(void)
{
	if (!mark_push || !push_frames)
		return -EINVAL;
	static_call_update(mark_push, (typeof(&tcp_mark_push))mark_push);
	static_call_update(push_frames, (typeof(&__tcp_push_pending_frames))push_frames);
	return klp_enable_patch(&patch);
}

/* livepatch lets nobody in here before the patch is off and no task runs its function. */
static void __exit lowtail_livepatch_exit(void)
{
}

module_init(lowtail_livepatch_init);
module_exit(lowtail_livepatch_exit);
MODULE_INFO(livepatch, "Y");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Test-only: a livepatch of tcp_push() that does the same, and counts");
