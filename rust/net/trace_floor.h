/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of tcp_dctcp_floor, under events/tcp_dctcp_floor/. Fields that tcp:tcp_probe has too
 * have its names and types.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM tcp_dctcp_floor

#if !defined(LOWTAIL_TRACE_FLOOR_H) || defined(TRACE_HEADER_MULTI_READ)
#define LOWTAIL_TRACE_FLOOR_H

#include <linux/tracepoint.h>
#include <net/inet_sock.h>
#include <net/net_namespace.h>
#include <net/tcp.h>
#include <trace/events/net_probe_common.h>

TRACE_DEFINE_ENUM(TCP_CA_Open);
TRACE_DEFINE_ENUM(TCP_CA_Disorder);
TRACE_DEFINE_ENUM(TCP_CA_CWR);
TRACE_DEFINE_ENUM(TCP_CA_Recovery);
TRACE_DEFINE_ENUM(TCP_CA_Loss);

#define lowtail_show_ca_state(state)			\
	__print_symbolic(state,				\
			 { TCP_CA_Open, "Open" },	\
			 { TCP_CA_Disorder, "Disorder" },	\
			 { TCP_CA_CWR, "CWR" },		\
			 { TCP_CA_Recovery, "Recovery" },	\
			 { TCP_CA_Loss, "Loss" })

/*
 * A window that was below 2 packets is raised: prior_cwnd to snd_cwnd. The state is the one that the
 * connection is in, or is about to enter. alpha is of 1024.
 */
TRACE_EVENT(dctcp_floor_raised,
	TP_PROTO(const struct sock *sk, u8 ca_state, u32 prior_cwnd, u32 cwnd, u32 alpha),
	TP_ARGS(sk, ca_state, prior_cwnd, cwnd, alpha),

	TP_STRUCT__entry(
		__array(__u8, saddr, sizeof(struct sockaddr_in6))
		__array(__u8, daddr, sizeof(struct sockaddr_in6))
		__field(const void *, skaddr)
		__field(__u32, netns)
		__field(__u16, sport)
		__field(__u16, dport)
		__field(__u16, family)
		__field(__u8, ca_state)
		__field(__u32, prior_cwnd)
		__field(__u32, snd_cwnd)
		__field(__u32, ssthresh)
		__field(__u32, alpha)
	),

	TP_fast_assign(
		const struct inet_sock *inet = inet_sk(sk);

		memset(__entry->saddr, 0, sizeof(struct sockaddr_in6));
		memset(__entry->daddr, 0, sizeof(struct sockaddr_in6));
		TP_STORE_ADDR_PORTS(__entry, inet, sk);
		__entry->skaddr = sk;
		__entry->netns = sock_net(sk)->ns.inum;
		__entry->sport = ntohs(inet->inet_sport);
		__entry->dport = ntohs(inet->inet_dport);
		__entry->family = sk->sk_family;
		__entry->ca_state = ca_state;
		__entry->prior_cwnd = prior_cwnd;
		__entry->snd_cwnd = cwnd;
		__entry->ssthresh = tcp_sk(sk)->snd_ssthresh;
		__entry->alpha = alpha;
	),

	TP_printk("netns=%u src=%pISpc dest=%pISpc ca_state=%s prior_cwnd=%u snd_cwnd=%u ssthresh=%u alpha=%u",
		  __entry->netns, __entry->saddr, __entry->daddr,
		  lowtail_show_ca_state(__entry->ca_state), __entry->prior_cwnd,
		  __entry->snd_cwnd, __entry->ssthresh, __entry->alpha)
);

/*
 * Below the floor the pacing rate (bytes a second) follows the window that is wanted, in 1/65536
 * packets, and the RTT, in us.
 */
TRACE_EVENT(dctcp_floor_paced,
	TP_PROTO(const struct sock *sk, u32 window, u32 rtt_us, u32 alpha),
	TP_ARGS(sk, window, rtt_us, alpha),

	TP_STRUCT__entry(
		__array(__u8, saddr, sizeof(struct sockaddr_in6))
		__array(__u8, daddr, sizeof(struct sockaddr_in6))
		__field(const void *, skaddr)
		__field(__u32, netns)
		__field(__u16, sport)
		__field(__u16, dport)
		__field(__u16, family)
		__field(__u32, window)
		__field(__u32, rtt_us)
		__field(__u64, pacing_rate)
		__field(__u32, alpha)
	),

	TP_fast_assign(
		const struct inet_sock *inet = inet_sk(sk);

		memset(__entry->saddr, 0, sizeof(struct sockaddr_in6));
		memset(__entry->daddr, 0, sizeof(struct sockaddr_in6));
		TP_STORE_ADDR_PORTS(__entry, inet, sk);
		__entry->skaddr = sk;
		__entry->netns = sock_net(sk)->ns.inum;
		__entry->sport = ntohs(inet->inet_sport);
		__entry->dport = ntohs(inet->inet_dport);
		__entry->family = sk->sk_family;
		__entry->window = window;
		__entry->rtt_us = rtt_us;
		__entry->pacing_rate = READ_ONCE(sk->sk_pacing_rate);
		__entry->alpha = alpha;
	),

	TP_printk("netns=%u src=%pISpc dest=%pISpc window=%u/65536 rtt_us=%u pacing_rate=%llu alpha=%u",
		  __entry->netns, __entry->saddr, __entry->daddr, __entry->window,
		  __entry->rtt_us, __entry->pacing_rate, __entry->alpha)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace_floor
#include <trace/define_trace.h>
