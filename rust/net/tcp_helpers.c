// SPDX-License-Identifier: GPL-2.0
/*
 * C for what Rust cannot call in a congestion control: TCP's inline functions and bit-fields.
 */
#include <linux/random.h>
#include <net/tcp.h>

#include "helpers.h"

u8 lowtail_ca_state(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state;
}

bool lowtail_ecn_mode_any(const struct sock *sk)
{
	return tcp_ecn_mode_any(tcp_sk(sk));
}

void lowtail_ecn_dontxmit(struct sock *sk)
{
	INET_ECN_dontxmit(sk);
}

u32 lowtail_packets_in_flight(const struct sock *sk)
{
	return tcp_packets_in_flight(tcp_sk(sk));
}

bool lowtail_is_cwnd_limited(const struct sock *sk)
{
	return tcp_is_cwnd_limited(sk);
}

/* The application is held by its send buffer, or has gone: cwnd is not what limits it. */
bool lowtail_sndbuf_limited(const struct sock *sk)
{
	return !sk->sk_socket || test_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
}

/* tcp_init_cwnd(), which is not exported: the route's initcwnd or 10 packets, within the clamp. */
u32 lowtail_init_cwnd(const struct sock *sk)
{
	const struct dst_entry *dst = __sk_dst_get(sk);
	u32 cwnd = dst ? dst_metric(dst, RTAX_INITCWND) : 0;

	return min(cwnd ? cwnd : TCP_INIT_CWND, tcp_sk(sk)->snd_cwnd_clamp);
}

/* As tcp_write_timer_handler() tests before it calls tcp_rack_reo_timeout(). */
bool lowtail_reordering_timer_fired(const struct sock *sk)
{
	return inet_csk(sk)->icsk_pending == ICSK_TIME_REO_TIMEOUT &&
	       !time_after(tcp_timeout_expires(sk), jiffies);
}

/* As tcp_bbr asks for it. Returns true when nobody paced this socket before. */
bool lowtail_ask_for_pacing(struct sock *sk)
{
	return cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED) == SK_PACING_NONE;
}

/*
 * Undoes lowtail_ask_for_pacing(), but for sch_fq and SO_MAX_PACING_RATE, which need it too. The
 * latter is set without the socket's lock, so look again afterwards. Without pacing nobody waits for
 * tcp_wstamp_ns, and packets must not be stamped with a moment to come: their RTT would be too short.
 */
void lowtail_end_pacing(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (READ_ONCE(sk->sk_max_pacing_rate) != ~0UL)
		return;
	if (cmpxchg(&sk->sk_pacing_status, SK_PACING_NEEDED, SK_PACING_NONE) != SK_PACING_NEEDED)
		return;
	if (READ_ONCE(sk->sk_max_pacing_rate) != ~0UL)
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	tp->tcp_wstamp_ns = min(tp->tcp_wstamp_ns, tp->tcp_clock_cache);
}

void lowtail_hold_back(struct sock *sk, u32 usecs)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tp->tcp_wstamp_ns <= tp->tcp_clock_cache)
		tp->tcp_wstamp_ns = tp->tcp_clock_cache + (u64)usecs * NSEC_PER_USEC;
}

u32 lowtail_random(void)
{
	return get_random_u32();
}

/*
 * Readers (tcp_get_info(), inet_diag) look at icsk_ca_ops without the socket lock. @ops belongs to
 * the module that already holds the socket's reference, so no reference changes hands.
 */
void lowtail_swap_ca_ops(struct sock *sk, const struct tcp_congestion_ops *ops)
{
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, ops);
}
