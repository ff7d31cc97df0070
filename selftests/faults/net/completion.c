// SPDX-License-Identifier: GPL-2.0
/*
 * Late TX completions: the charge of a packet outlives the packet.
 *
 *	packet ──► device            tcp_wfree()
 *	   │ charge, destructor          ▲
 *	   ▼                             │ freed when its time has come
 *	shadow ──► queue ────────────────┘
 *
 * The packet itself goes on at once, without an owner, as after skb_orphan(). Shadows are freed in
 * the order in which packets were sent, in softirq, as a driver does it: a shorter delay that is
 * chosen later waits for the longer ones before it.
 */
#include <linux/hrtimer.h>
#include <linux/skbuff.h>
#include <net/tcp.h>

#include "fault_helpers.h"

static struct sk_buff_head shadows;
static struct hrtimer timer;
static unsigned long open;

/* When a shadow is to be freed. */
static ktime_t *due(struct sk_buff *shadow)
{
	BUILD_BUG_ON(sizeof(ktime_t) > sizeof(shadow->cb));
	return (ktime_t *)shadow->cb;
}

static enum hrtimer_restart expire(struct hrtimer *t)
{
	struct sk_buff *shadow;
	unsigned long flags;

	for (;;) {
		spin_lock_irqsave(&shadows.lock, flags);
		shadow = skb_peek(&shadows);
		if (!shadow || ktime_after(*due(shadow), ktime_get()))
			break;
		__skb_unlink(shadow, &shadows);
		spin_unlock_irqrestore(&shadows.lock, flags);
		consume_skb(shadow);
	}
	/* Not HRTIMER_RESTART: another CPU may have found the queue empty and started it already. */
	if (shadow)
		hrtimer_start(t, *due(shadow), HRTIMER_MODE_ABS_SOFT);
	spin_unlock_irqrestore(&shadows.lock, flags);
	return HRTIMER_NORESTART;
}

/* False when it is open already. */
bool lowtail_fault_completions_init(void)
{
	static bool once;

	if (test_bit(0, &open))
		return false;
	if (!once) {
		skb_queue_head_init(&shadows);
		hrtimer_setup(&timer, expire, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
		once = true;
	}
	smp_mb__before_atomic();
	set_bit(0, &open);
	return true;
}

/* Every completion that is still out comes now. The hook that adds to them is gone. */
void lowtail_fault_completions_flush(void)
{
	clear_bit(0, &open);
	hrtimer_cancel(&timer);
	local_bh_disable();
	skb_queue_purge(&shadows);
	local_bh_enable();
}

/* False, with the packet as it was, when there is no memory or nothing is open. */
bool lowtail_fault_complete_after(struct sk_buff *skb, u32 usecs)
{
	struct sk_buff *shadow;
	unsigned long flags;
	bool first;

	shadow = test_bit_acquire(0, &open) ? alloc_skb(0, GFP_ATOMIC) : NULL;
	if (!shadow)
		return false;
	shadow->sk = skb->sk;
	shadow->truesize = skb->truesize;
	shadow->destructor = skb->destructor;
	skb->sk = NULL;
	skb->destructor = NULL;
	*due(shadow) = ktime_add_us(ktime_get(), usecs);

	spin_lock_irqsave(&shadows.lock, flags);
	first = skb_queue_empty(&shadows);
	__skb_queue_tail(&shadows, shadow);
	/* Otherwise the timer runs, or is about to look at the queue. */
	if (first)
		hrtimer_start(&timer, *due(shadow), HRTIMER_MODE_ABS_SOFT);
	spin_unlock_irqrestore(&shadows.lock, flags);
	return true;
}
