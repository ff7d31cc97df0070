// SPDX-License-Identifier: GPL-2.0
/*
 * Names the structs whose layouts are wanted; the compiler describes what is used.
 */

#include <linux/module.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <net/tcp.h>

size_t lowtail_layouts(struct tcp_sock *tp, struct sk_buff *skb);
size_t lowtail_layouts(struct tcp_sock *tp, struct sk_buff *skb)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;

	return tp->snd_cwnd + skb->len + sizeof(*icsk->icsk_ca_ops) + icsk->icsk_ca_ops->name[0];
}

MODULE_DESCRIPTION("lowtail's tests: layouts of structs, never loaded");
MODULE_LICENSE("GPL");
