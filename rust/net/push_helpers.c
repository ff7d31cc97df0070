// SPDX-License-Identifier: GPL-2.0
/*
 * C for what Rust cannot call around tcp_push(): bit-fields, static functions of net/ipv4/tcp.c
 * that have to be repeated, the socket's pacing timer, and tracepoints.
 */
#include <linux/net.h>
#include <net/dst.h>
#include <net/tcp.h>

#include "helpers.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

u8 lowtail_nonagle(const struct sock *sk)
{
	return tcp_sk(sk)->nonagle;
}

/* Packets of this socket go to this very host. */
bool lowtail_on_loopback_route(const struct sock *sk)
{
	const struct dst_entry *dst;
	bool loopback;

	rcu_read_lock();
	dst = __sk_dst_get(sk);
	loopback = dst && (dst_dev_rcu(dst)->flags & IFF_LOOPBACK);
	rcu_read_unlock();
	return loopback;
}

/* The socket's upper-layer protocol is kTLS, whatever MPTCP and others may have there. */
bool lowtail_has_ktls(const struct sock *sk)
{
	const struct tcp_ulp_ops *ulp = inet_csk(sk)->icsk_ulp_ops;

	return ulp && !strcmp(ulp->name, "tls");
}

/*
 * tcp_should_autocork(), which is static, and the test after it in tcp_push(): the socket's last
 * buffer is about to be held. Between this and tcp_push()'s own look a completion can free the
 * buffer, nothing can hold one more.
 */
static bool would_autocork(const struct sock *sk, int size_goal)
{
	const struct sk_buff *skb = tcp_write_queue_tail(sk);

	return skb && skb->len < size_goal &&
	       READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_autocorking) &&
	       !tcp_rtx_queue_empty(sk) &&
	       refcount_read(&sk->sk_wmem_alloc) > skb->truesize &&
	       tcp_skb_can_collapse_to(skb);
}

/*
 * The socket's pacing timer pushes what it can when it expires (tcp_pace_kick()), whoever set it,
 * and knows about sockets that are owned, closed or gone: it holds a reference, and
 * tcp_clear_xmit_timers() cancels it. One that is set for pacing lets nothing out any earlier.
 *
 * Every hold needs a timer that expires within @usecs. While one goes on (TSQ_THROTTLED) under a timer,
 * more writes change nothing: this is what happens to most writes of a stream, so it is asked first.
 * When a hold begins and the timer of an earlier one is still queued, it will do; but with less than
 * half of the time left it is put off instead of letting it cut the new hold short: as long as
 * completions come in time it is moved now and then, and never expires.
 */
u32 lowtail_bound_hold(struct sock *sk, int size_goal, u32 usecs)
{
	struct hrtimer *timer = &tcp_sk(sk)->pacing_timer;
	bool queued = hrtimer_is_queued(timer);
	ktime_t whole;

	if (queued && test_bit(TSQ_THROTTLED, &sk->sk_tsq_flags))
		return LOWTAIL_NO_NEW_HOLD;
	if (!would_autocork(sk, size_goal))
		return LOWTAIL_NO_NEW_HOLD;

	whole = us_to_ktime(usecs);
	if (queued) {
		if (tcp_needs_internal_pacing(sk) || hrtimer_get_remaining(timer) > whole / 2)
			return LOWTAIL_HELD;
		/* A timer that is taken off the queue leaves its reference to us. */
		if (hrtimer_try_to_cancel(timer) != 1)
			sock_hold(sk);
	} else {
		sock_hold(sk);
	}
	hrtimer_start(timer, whole, HRTIMER_MODE_REL_PINNED_SOFT);
	return LOWTAIL_HELD_AND_SET;
}

struct sock *lowtail_pacing_timer_sock(struct hrtimer *timer)
{
	return (struct sock *)container_of(timer, struct tcp_sock, pacing_timer);
}

bool lowtail_needs_internal_pacing(const struct sock *sk)
{
	return tcp_needs_internal_pacing(sk);
}

/*
 * Data was autocorked, and no TX completion has asked for a push since. Or is about to be: a timer
 * can expire between the hook and the tcp_push() behind it, which then has not set TSQ_THROTTLED yet;
 * its caller owns the socket, and sends when it lets go of it. Without the socket lock, so its owner is
 * not asked for by sock_owned_by_user_nocheck(), which is for those who have sk_lock.slock: it reads plainly.
 */
bool lowtail_is_held(const struct sock *sk)
{
	unsigned long tsq = READ_ONCE(sk->sk_tsq_flags);

	if (!READ_ONCE(sk->sk_send_head))
		return false;
	return tsq & TSQF_THROTTLED ||
	       (READ_ONCE(sk->sk_lock.owned) && !(tsq & (TSQF_QUEUED | TCPF_TSQ_DEFERRED)));
}

void lowtail_trace_push(const struct sock *sk, u32 verdict, bool held, bool spliced)
{
	trace_tcp_push_verdict(sk, verdict, held, spliced);
}

void lowtail_trace_deadline(const struct sock *sk, bool held)
{
	trace_tcp_deadline(sk, held);
}

/*
 * A connection to nobody, in repair mode: it is established without a handshake, data written to
 * it passes through tcp_push() and leaves no packet, and closing it is as quiet.
 */
struct socket *lowtail_probe_open(void)
{
	struct sockaddr_in nowhere = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(9),
	};
	struct socket *sock;
	int err;

	err = sock_create_kern(&init_net, AF_INET, SOCK_STREAM, IPPROTO_TCP, &sock);
	if (err)
		return ERR_PTR(err);

	lock_sock(sock->sk);
	sock->sk->sk_reuse = SK_FORCE_REUSE;
	tcp_sk(sock->sk)->repair = 1;
	tcp_sk(sock->sk)->repair_queue = TCP_SEND_QUEUE;
	release_sock(sock->sk);

	err = kernel_connect(sock, (struct sockaddr_unsized *)&nowhere, sizeof(nowhere), 0);
	if (err) {
		sock_release(sock);
		return ERR_PTR(err);
	}
	return sock;
}

struct sock *lowtail_probe_sock(const struct socket *sock)
{
	return sock->sk;
}

int lowtail_probe_push(struct socket *sock)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT };
	char byte = 0;
	struct kvec vec = { .iov_base = &byte, .iov_len = sizeof(byte) };
	int sent = kernel_sendmsg(sock, &msg, &vec, 1, sizeof(byte));

	return sent < 0 ? sent : 0;
}

void lowtail_probe_close(struct socket *sock)
{
	sock_release(sock);
}
