/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of autocork_policy, under events/autocork_policy/. In C, since Rust's declare_trace!
 * finds only those that the kernel's own bindings name.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM autocork_policy

#if !defined(LOWTAIL_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define LOWTAIL_TRACE_H

#include <linux/tracepoint.h>
#include <net/inet_sock.h>
#include <net/net_namespace.h>

/* By the numbers of rust/policy's Verdict. */
#define lowtail_show_verdict(verdict)			\
	__print_symbolic(verdict,			\
			 { 0, "covered" },		\
			 { 1, "bounded" },		\
			 { 2, "left_stock" },		\
			 { 3, "left_nagle" },		\
			 { 4, "left_cork" },		\
			 { 5, "left_more" })

/* A call of tcp_push(), and what was decided about it. */
TRACE_EVENT(tcp_push_verdict,
	TP_PROTO(const struct sock *sk, u32 verdict, bool held, bool spliced),
	TP_ARGS(sk, verdict, held, spliced),

	TP_STRUCT__entry(
		__field(const void *, skaddr)
		__field(u32, netns)
		__field(u32, verdict)
		__field(u16, family)
		__field(u16, sport)
		__field(u16, dport)
		__field(bool, held)
		__field(bool, spliced)
	),

	TP_fast_assign(
		__entry->skaddr = sk;
		__entry->netns = sock_net(sk)->ns.inum;
		__entry->verdict = verdict;
		__entry->family = sk->sk_family;
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->held = held;
		__entry->spliced = spliced;
	),

	TP_printk("skaddr=%p netns=%u family=%u sport=%u dport=%u verdict=%s held=%d spliced=%d",
		  __entry->skaddr, __entry->netns, __entry->family, __entry->sport,
		  __entry->dport, lowtail_show_verdict(__entry->verdict), __entry->held,
		  __entry->spliced)
);

/* A deadline expired; held tells whether it found data that nothing else had sent. */
TRACE_EVENT(tcp_deadline,
	TP_PROTO(const struct sock *sk, bool held),
	TP_ARGS(sk, held),

	TP_STRUCT__entry(
		__field(const void *, skaddr)
		__field(u32, netns)
		__field(u16, sport)
		__field(u16, dport)
		__field(bool, held)
	),

	TP_fast_assign(
		__entry->skaddr = sk;
		__entry->netns = sock_net(sk)->ns.inum;
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->held = held;
	),

	TP_printk("skaddr=%p netns=%u sport=%u dport=%u held=%d",
		  __entry->skaddr, __entry->netns, __entry->sport, __entry->dport, __entry->held)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
