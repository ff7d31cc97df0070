// SPDX-License-Identifier: GPL-2.0
/*
 * Where gcc put the members that rust/net reads, for comparison with bindgen's (clang's) idea of
 * them: see layout.rs. Compiled to assembly only, never linked.
 */
#define COMPILE_OFFSETS

#include <linux/ftrace.h>
#include <linux/kbuild.h>
#include <linux/moduleparam.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#define SYSCTL(name, member) \
	DEFINE(NET_##name, offsetof(struct net, ipv4.sysctl_##member)); \
	DEFINE(SIZEOF_NET_##name, sizeof_field(struct net, ipv4.sysctl_##member))

int main(void)
{
	DEFINE(SIZEOF_TCP_SOCK, sizeof(struct tcp_sock));
	DEFINE(SIZEOF_SOCK, sizeof(struct sock));
	DEFINE(SIZEOF_ICSK, sizeof(struct inet_connection_sock));
	DEFINE(SIZEOF_CA_OPS, sizeof(struct tcp_congestion_ops));
	DEFINE(SIZEOF_RATE_SAMPLE, sizeof(struct rate_sample));
	DEFINE(SIZEOF_FTRACE_OPS, sizeof(struct ftrace_ops));
	DEFINE(SIZEOF_PERNET_OPS, sizeof(struct pernet_operations));
	DEFINE(SIZEOF_CTL_TABLE, sizeof(struct ctl_table));
	DEFINE(SIZEOF_KERNEL_PARAM, sizeof(struct kernel_param));
	DEFINE(SIZEOF_PLB, sizeof(struct tcp_plb_state));

	DEFINE(SIZEOF_FTRACE_REGS, sizeof(struct __arch_ftrace_regs));
	DEFINE(NET_COUNT, offsetof(struct net, ns.__ns_ref));
	DEFINE(NET_GEN, offsetof(struct net, gen));
	DEFINE(GENERIC_PTR, offsetof(struct net_generic, ptr));
	SYSCTL(MIN_TSO_SEGS, tcp_min_tso_segs);
	SYSCTL(SLOW_START_AFTER_IDLE, tcp_slow_start_after_idle);
	SYSCTL(PLB_ENABLED, tcp_plb_enabled);
	SYSCTL(REORDERING, tcp_reordering);
	SYSCTL(PACING_SS_RATIO, tcp_pacing_ss_ratio);
	SYSCTL(PACING_CA_RATIO, tcp_pacing_ca_ratio);

	DEFINE(SK_NET, offsetof(struct sock, sk_net));
	DEFINE(SK_STATE, offsetof(struct sock, sk_state));
	DEFINE(SK_PACING_RATE, offsetof(struct sock, sk_pacing_rate));
	DEFINE(SK_MAX_PACING_RATE, offsetof(struct sock, sk_max_pacing_rate));
	DEFINE(CSK_CA_PRIV, offsetof(struct inet_connection_sock, icsk_ca_priv));
	DEFINE(CSK_RTO, offsetof(struct inet_connection_sock, icsk_rto));
	DEFINE(CSK_ACK, offsetof(struct inet_connection_sock, icsk_ack));
	DEFINE(CSK_CA_OPS, offsetof(struct inet_connection_sock, icsk_ca_ops));

	DEFINE(TP_DELIVERED, offsetof(struct tcp_sock, delivered));
	DEFINE(TP_DELIVERED_CE, offsetof(struct tcp_sock, delivered_ce));
	DEFINE(TP_ECN_FLAGS, offsetof(struct tcp_sock, ecn_flags));
	DEFINE(TP_LSNDTIME, offsetof(struct tcp_sock, lsndtime));
	DEFINE(TP_LOST, offsetof(struct tcp_sock, lost));
	DEFINE(TP_MSS_CACHE, offsetof(struct tcp_sock, mss_cache));
	DEFINE(TP_PACKETS_OUT, offsetof(struct tcp_sock, packets_out));
	DEFINE(TP_PRIOR_CWND, offsetof(struct tcp_sock, prior_cwnd));
	DEFINE(TP_PRR_DELIVERED, offsetof(struct tcp_sock, prr_delivered));
	DEFINE(TP_PRR_OUT, offsetof(struct tcp_sock, prr_out));
	DEFINE(TP_RACK_RTT_US, offsetof(struct tcp_sock, rack.rtt_us));
	DEFINE(TP_RCV_NXT, offsetof(struct tcp_sock, rcv_nxt));
	DEFINE(TP_REORDERING, offsetof(struct tcp_sock, reordering));
	DEFINE(TP_SND_CWND, offsetof(struct tcp_sock, snd_cwnd));
	DEFINE(TP_SND_CWND_STAMP, offsetof(struct tcp_sock, snd_cwnd_stamp));
	DEFINE(TP_SND_CWND_USED, offsetof(struct tcp_sock, snd_cwnd_used));
	DEFINE(TP_SND_NXT, offsetof(struct tcp_sock, snd_nxt));
	DEFINE(TP_SND_SSTHRESH, offsetof(struct tcp_sock, snd_ssthresh));
	DEFINE(TP_SND_UNA, offsetof(struct tcp_sock, snd_una));
	DEFINE(TP_SND_WND, offsetof(struct tcp_sock, snd_wnd));
	DEFINE(TP_SRTT_US, offsetof(struct tcp_sock, srtt_us));
	DEFINE(TP_UNDO_MARKER, offsetof(struct tcp_sock, undo_marker));
	DEFINE(TP_WRITE_SEQ, offsetof(struct tcp_sock, write_seq));
	return 0;
}
