/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C for what Rust cannot call in the fault hooks: inline functions, bit-fields and packet headers.
 * Each function does that one thing and decides nothing.
 */
#ifndef LOWTAIL_FAULT_HELPERS_H
#define LOWTAIL_FAULT_HELPERS_H

#include <linux/types.h>

struct net;
struct sk_buff;
struct sock;

/* The ports of a socket, host byte order. */
struct lowtail_fault_ports {
	u16 local;
	u16 remote;
};

/* A segment on its way out, and the state of its sender before it counts the segment as sent. */
struct lowtail_fault_segment {
	struct lowtail_fault_ports ports;
	u32 seq;
	u32 payload;
	u32 snd_nxt;
	u32 write_seq;
	u32 packets_out;
	u32 cwnd;
	u16 segs;
	bool fin;
	bool push;
	bool ect;
};

/* fault_helpers.c */
struct net *lowtail_fault_net(const struct sk_buff *skb);
struct lowtail_fault_ports lowtail_fault_ports(const struct sk_buff *skb);
bool lowtail_fault_segment(const struct sk_buff *skb, struct lowtail_fault_segment *segment);
bool lowtail_fault_mark_ce(struct sk_buff *skb);
void lowtail_fault_lose(struct sk_buff *skb);
struct sk_buff *lowtail_fault_next(const struct sk_buff *skb);
bool lowtail_fault_is_charged(const struct sk_buff *skb);
bool lowtail_fault_wakeup_due(const struct sk_buff *skb);
void lowtail_fault_lose_wakeup(struct sk_buff *skb);

/* completion.c */
bool lowtail_fault_completions_init(void);
void lowtail_fault_completions_flush(void);
bool lowtail_fault_complete_after(struct sk_buff *skb, u32 usecs);

#endif
