// SPDX-License-Identifier: GPL-2.0
/*
 * C for what Rust cannot call in the fault hooks: inline functions, bit-fields and packet headers.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <net/inet_ecn.h>
#include <net/tcp.h>

#include "fault_helpers.h"

struct net *lowtail_fault_net(const struct sk_buff *skb)
{
	return sock_net(skb->sk);
}

struct lowtail_fault_ports lowtail_fault_ports(const struct sk_buff *skb)
{
	return (struct lowtail_fault_ports){
		.local = READ_ONCE(skb->sk->sk_num),
		.remote = ntohs(READ_ONCE(skb->sk->sk_dport)),
	};
}

/* The packet is TCP itself, not a tunnel's around it, whose skb->sk is the inner socket too. */
static bool is_tcp(const struct sk_buff *skb)
{
	switch (skb->protocol) {
	case htons(ETH_P_IP):
		return ip_hdr(skb)->protocol == IPPROTO_TCP;
	case htons(ETH_P_IPV6):
		return ipv6_hdr(skb)->nexthdr == IPPROTO_TCP;
	}
	return false;
}

static bool is_ect(const struct sk_buff *skb)
{
	u8 dsfield = skb->protocol == htons(ETH_P_IP) ? ipv4_get_dsfield(ip_hdr(skb)) :
							ipv6_get_dsfield(ipv6_hdr(skb));

	return !INET_ECN_is_not_ect(dsfield) && !INET_ECN_is_ce(dsfield);
}

/* False for whatever is not data of an established connection. Called by who owns the socket. */
bool lowtail_fault_segment(const struct sk_buff *skb, struct lowtail_fault_segment *segment)
{
	const struct sock *sk = skb->sk;
	const struct tcp_sock *tp;
	const struct tcphdr *th;
	unsigned int headers;

	if (!sk || !sk_fullsock(sk) || !sk_is_tcp(sk) || !is_tcp(skb))
		return false;
	th = tcp_hdr(skb);
	headers = skb_transport_offset(skb) + th->doff * 4;
	if (th->syn || skb->len <= headers)
		return false;

	tp = tcp_sk(sk);
	*segment = (struct lowtail_fault_segment){
		.ports = lowtail_fault_ports(skb),
		.seq = ntohl(th->seq),
		.payload = skb->len - headers,
		.snd_nxt = tp->snd_nxt,
		.write_seq = tp->write_seq,
		.packets_out = tp->packets_out,
		.cwnd = tcp_snd_cwnd(tp),
		.segs = max_t(u16, skb_shinfo(skb)->gso_segs, 1),
		.fin = th->fin,
		.push = th->psh,
		.ect = is_ect(skb),
	};
	return true;
}

bool lowtail_fault_mark_ce(struct sk_buff *skb)
{
	return INET_ECN_set_ce(skb);
}

/* As if the network lost it: the sender's own stack must not be told, so it is not NF_DROP. */
void lowtail_fault_lose(struct sk_buff *skb)
{
	kfree_skb_reason(skb, SKB_DROP_REASON_NETFILTER_DROP);
}

struct sk_buff *lowtail_fault_next(const struct sk_buff *skb)
{
	return skb->next;
}

/* The packet is charged to a TCP socket that waits for its completion: data, not a pure ACK. */
bool lowtail_fault_is_charged(const struct sk_buff *skb)
{
	return skb->sk && skb->destructor == tcp_wfree;
}

/*
 * tcp_wfree() is about to wake the socket up, and no later completion can do it: what stays charged
 * is less than the smallest packet with data.
 */
bool lowtail_fault_wakeup_due(const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;
	unsigned long flags = smp_load_acquire(&sk->sk_tsq_flags);

	return (flags & TSQF_THROTTLED) && !(flags & TSQF_QUEUED) &&
	       refcount_read(&sk->sk_wmem_alloc) < skb->truesize + SKB_TRUESIZE(1);
}

void lowtail_fault_lose_wakeup(struct sk_buff *skb)
{
	clear_bit(TSQ_THROTTLED, &skb->sk->sk_tsq_flags);
}
