// SPDX-License-Identifier: GPL-2.0
/*
 * Connections as things that can be made, copied and compared, and the one clock that all of them
 * go by. Nothing of the kernel's is in here.
 */
#include <stdlib.h>

#include "standin.h"
#include "oracle.h"

unsigned long jiffies;
u64 oracle_clock;
struct net oracle_net;

struct tcp_sock *oracle_new(void)
{
	return calloc(1, sizeof(struct tcp_sock));
}

void oracle_delete(struct tcp_sock *tp)
{
	free(tp);
}

/* A pointer into one connection becomes the one to the same place in the other. */
#define MOVE(pointer, to, from)								\
	((pointer) = !(pointer) ? NULL :						\
		     (void *)((char *)(to) + ((char *)(pointer) - (const char *)(from))))

static void oracle_move_list(struct list_head *list, struct tcp_sock *to, const struct tcp_sock *from)
{
	MOVE(list->next, to, from);
	MOVE(list->prev, to, from);
}

static void oracle_move_queue(struct skb_list *queue, struct tcp_sock *to,
			      const struct tcp_sock *from)
{
	MOVE(queue->first, to, from);
	MOVE(queue->last, to, from);
}

/*
 * Every member that points into the connection is named here. To tell them by their values does
 * not do: two sequence numbers side by side can look like an address.
 */
void oracle_copy(struct tcp_sock *to, const struct tcp_sock *from)
{
	const struct tcp_congestion_ops *ops = to->inet_conn.icsk_ca_ops;
	struct sock *sk = &to->inet_conn.sk;
	u64 data[ARRAY_SIZE(to->inet_conn.icsk_ca_priv)];
	size_t i;

	memcpy(data, to->inet_conn.icsk_ca_priv, sizeof(data));
	memcpy(to, from, sizeof(*to));
	MOVE(sk->sk_socket, to, from);
	MOVE(sk->dst, to, from);
	oracle_move_queue(&sk->sk_write_queue, to, from);
	oracle_move_queue(&sk->tcp_rtx_queue, to, from);
	MOVE(to->highest_sack, to, from);
	MOVE(to->retransmit_skb_hint, to, from);
	oracle_move_list(&to->tsorted_sent_queue, to, from);
	MOVE(to->oracle_free, to, from);
	for (i = 0; i < ARRAY_SIZE(to->oracle_pool); i++) {
		MOVE(to->oracle_pool[i].next, to, from);
		oracle_move_list(&to->oracle_pool[i].tcp_tsorted_anchor, to, from);
	}
	memcpy(to->inet_conn.icsk_ca_priv, data, sizeof(data));
	to->inet_conn.icsk_ca_ops = ops;
	to->oracle_low = to->snd_cwnd;
	to->oracle_floor = 0;
}

bool oracle_copies_numbers(void)
{
	struct tcp_sock *from = oracle_new(), *to = oracle_new();
	uintptr_t address = (uintptr_t)from;
	bool same = true;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(from->oracle_pool); i++) {
		struct tcp_skb_cb *cb = &from->oracle_pool[i].cb;

		/* Little endian; elsewhere they are no address. */
		cb->seq = (u32)address;
		cb->end_seq = (u32)(address >> 32);
	}
	oracle_copy(to, from);
	for (i = 0; i < ARRAY_SIZE(from->oracle_pool); i++)
		same &= !memcmp(&to->oracle_pool[i].cb, &from->oracle_pool[i].cb,
				sizeof(from->oracle_pool[i].cb));
	oracle_delete(from);
	oracle_delete(to);
	return same;
}

#define OTHER_NUMBERS(X)								\
	X("ca_state", icsk->icsk_ca_state)						\
	X("pacing_rate", sk->sk_pacing_rate)						\
	X("rto", icsk->icsk_rto)							\
	X("timer", icsk->icsk_pending)							\
	X("timer_expires", icsk->icsk_pending ? sk->tcp_retransmit_timer.expires : 0)	\
	X("ecn_flags", tp->ecn_flags)							\
	X("ack_pending", icsk->icsk_ack.pending)					\
	X("undo_retrans", (u32)tp->undo_retrans)					\
	X("info_size", size)								\
	X("info_attribute", attribute)							\
	X("info_enabled", info.dctcp.dctcp_enabled)					\
	X("info_ce_state", info.dctcp.dctcp_ce_state)					\
	X("info_alpha", info.dctcp.dctcp_alpha)						\
	X("info_ecn_bytes", info.dctcp.dctcp_ab_ecn)					\
	X("info_total_bytes", info.dctcp.dctcp_ab_tot)

enum {
#define X(member) ORACLE_NUMBER_##member,
	TCP_SOCK_NUMBERS(X)
#undef X
	ORACLE_OTHER_NUMBERS,
#define X(name, value) + 1
	ORACLE_NUMBERS = ORACLE_OTHER_NUMBERS OTHER_NUMBERS(X),
#undef X
};

static void oracle_numbers(struct tcp_sock *tp, u64 *numbers)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;
	struct sock *sk = &icsk->sk;
	union tcp_cc_info info;
	int attribute = 0;
	size_t size;

	memset(&info, 0xff, sizeof(info));
	size = icsk->icsk_ca_ops->get_info(sk, 1 << (INET_DIAG_DCTCPINFO - 1), &attribute, &info);
#define X(member) *numbers++ = tp->member;
	TCP_SOCK_NUMBERS(X)
#undef X
#define X(name, value) *numbers++ = value;
	OTHER_NUMBERS(X)
#undef X
}

int oracle_differ(struct tcp_sock *a, struct tcp_sock *b, int from)
{
	u64 x[ORACLE_NUMBERS], y[ORACLE_NUMBERS];
	int i;

	oracle_numbers(a, x);
	oracle_numbers(b, y);
	if (!memcmp(x, y, sizeof(x)))
		return -1;
	for (i = from; i < ORACLE_NUMBERS; i++)
		if (x[i] != y[i])
			return i;
	return -1;
}

const char *oracle_name(int number)
{
	static const char *const names[] = {
#define X(member) #member,
		TCP_SOCK_NUMBERS(X)
#undef X
#define X(name, value) name,
		OTHER_NUMBERS(X)
#undef X
	};

	return names[number];
}

uint64_t oracle_value(struct tcp_sock *tp, int number)
{
	u64 numbers[ORACLE_NUMBERS];

	oracle_numbers(tp, numbers);
	return numbers[number];
}

static unsigned long oracle_first_jiffy;

void oracle_reset(uint32_t before_wrap)
{
	oracle_first_jiffy = (1UL << 32) - before_wrap;
	jiffies = oracle_first_jiffy;
	/* Not 0, which stands for "not sent" in time stamps. */
	oracle_clock = USEC_PER_JIFFY;
}

void oracle_pass(const struct tcp_sock *tp, const struct oracle_step *step)
{
	if (step->kind == ORACLE_TIME)
		oracle_clock += (u64)step->a * USEC_PER_JIFFY + step->b;
	else if (tp->inet_conn.icsk_pending)
		oracle_clock = max(oracle_clock,
				   (u64)(tp->inet_conn.sk.tcp_retransmit_timer.expires -
					 oracle_first_jiffy + 1) * USEC_PER_JIFFY);
	jiffies = oracle_first_jiffy + oracle_clock / USEC_PER_JIFFY - 1;
}

void oracle_set_sysctl(uint32_t which, uint32_t value)
{
	struct netns_ipv4 *ipv4 = &oracle_net.ipv4;

	ipv4->sysctl_tcp_max_reordering = 300;
	ipv4->sysctl_tcp_tso_rtt_log = 9;
	ipv4->sysctl_tcp_plb_suspend_rto_sec = 60;
	switch (which) {
	case ORACLE_SLOW_START_AFTER_IDLE:
		ipv4->sysctl_tcp_slow_start_after_idle = value;
		break;
	case ORACLE_PACING_SS_RATIO:
		ipv4->sysctl_tcp_pacing_ss_ratio = value;
		break;
	case ORACLE_PACING_CA_RATIO:
		ipv4->sysctl_tcp_pacing_ca_ratio = value;
		break;
	case ORACLE_REORDERING:
		ipv4->sysctl_tcp_reordering = value;
		break;
	case ORACLE_PLB_ENABLED:
		ipv4->sysctl_tcp_plb_enabled = value;
		break;
	case ORACLE_PLB_CONG_THRESH:
		ipv4->sysctl_tcp_plb_cong_thresh = value;
		break;
	case ORACLE_PLB_REHASH_ROUNDS:
		ipv4->sysctl_tcp_plb_rehash_rounds = value;
		break;
	case ORACLE_PLB_IDLE_REHASH_ROUNDS:
		ipv4->sysctl_tcp_plb_idle_rehash_rounds = value;
		break;
	case ORACLE_FRTO:
		ipv4->sysctl_tcp_frto = value;
		break;
	case ORACLE_RECOVERY:
		ipv4->sysctl_tcp_recovery = value;
		break;
	case ORACLE_EARLY_RETRANS:
		ipv4->sysctl_tcp_early_retrans = value;
		break;
	case ORACLE_MIN_TSO_SEGS:
		ipv4->sysctl_tcp_min_tso_segs = value;
		break;
	}
}

uint32_t oracle_cwnd(const struct tcp_sock *tp)
{
	return tp->snd_cwnd;
}

uint32_t oracle_rto(const struct tcp_sock *tp)
{
	return tp->inet_conn.icsk_rto;
}

uint32_t oracle_low(struct tcp_sock *tp)
{
	u32 low = tp->oracle_low;

	tp->oracle_low = tp->snd_cwnd;
	return low;
}

uint32_t oracle_below(struct tcp_sock *tp)
{
	u32 below = tp->oracle_below;

	tp->oracle_below = 0;
	return below;
}

void oracle_set_floor(struct tcp_sock *tp, uint32_t floor)
{
	tp->oracle_floor = floor;
}

uint8_t oracle_state(const struct tcp_sock *tp)
{
	return tp->inet_conn.icsk_ca_state;
}

bool oracle_may_undo(const struct tcp_sock *tp)
{
	return tp->undo_marker;
}

bool oracle_falls_back(const struct tcp_sock *tp, const struct tcp_congestion_ops *ops)
{
	return tp->inet_conn.icsk_ca_ops != ops;
}
