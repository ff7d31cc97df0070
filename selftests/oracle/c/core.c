// SPDX-License-Identifier: GPL-2.0
/*
 * Core TCP and tcp_dctcp as the kernel source has them, around the ends of the stack that the test
 * plays: application, network, clock. Compiled once as it is, and once for each planted difference
 * (then every name that the linker sees is another one).
 */
#include "standin.h"
#include "oracle.h"

static int oracle_nothing __maybe_unused;
struct oracle_nothing;

/* Both queues; all that is sent is appended. */
static void oracle_append(struct skb_list *list, struct sk_buff *skb)
{
	skb->next = NULL;
	if (list->last)
		list->last->next = skb;
	else
		list->first = skb;
	list->last = skb;
}

static void oracle_unlink_first(struct skb_list *list, struct sk_buff *skb)
{
	list->first = skb->next;
	if (!list->first)
		list->last = NULL;
}

#define __skb_unlink(skb, queue)	oracle_unlink_first(queue, skb)
#define tcp_rbtree_insert(root, skb)	oracle_append(root, skb)

static void tcp_rtx_queue_unlink_and_free(struct sk_buff *skb, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	list_del(&skb->tcp_tsorted_anchor);
	oracle_unlink_first(&sk->tcp_rtx_queue, skb);
	skb->next = tp->oracle_free;
	tp->oracle_free = skb;
	tp->oracle_packets--;
}

static u32 tcp_sacktag_write_queue(struct sock *sk, const struct sk_buff *ack_skb,
				   u32 prior_snd_una, struct tcp_sacktag_state *state);

static int tcp_transmit_skb(struct sock *sk, struct sk_buff *skb, int clone_it, gfp_t gfp);
static int __tcp_retransmit_skb(struct sock *sk, struct sk_buff *skb, int segs);
static void tcp_retransmit_timer(struct sock *sk);

#include "cut_prototypes.h"
#include "cut.c"
#include "cut_recovery.c"
#include "cut_plb.c"
#include "cut_dctcp.c"

/* What the ACK that is being processed says of packets out of order. */
static struct {
	u32 skip, mask;
	bool dsack;
} oracle_sack;

/*
 * Tags what an ACK selectively acknowledges. The kernel's function finds packets quickly; this one
 * looks at all, and leaves what happens to each to the kernel's tcp_sacktag_one().
 */
static u32 tcp_sacktag_write_queue(struct sock *sk, const struct sk_buff *ack_skb,
				   u32 prior_snd_una, struct tcp_sacktag_state *state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct sk_buff *skb;
	u32 i = 0;

	state->flag = 0;
	state->reord = tp->snd_nxt;
	if (!tp->sacked_out)
		tcp_highest_sack_reset(sk);

	if (oracle_sack.dsack) {
		/* The packet before the acknowledgment number arrived twice. */
		u32 end = TCP_SKB_CB(ack_skb)->ack_seq;
		u32 dups = tcp_dsack_seen(tp, end - tp->mss_cache, end, state);

		if (dups && tp->undo_marker && tp->undo_retrans > 0 &&
		    !after(end, prior_snd_una) && after(end, tp->undo_marker))
			tp->undo_retrans = max_t(int, 0, tp->undo_retrans - (int)dups);
	}

	skb_rbtree_walk(skb, &sk->tcp_rtx_queue) {
		struct tcp_skb_cb *scb = TCP_SKB_CB(skb);

		if (i >= oracle_sack.skip && i - oracle_sack.skip < 32 &&
		    oracle_sack.mask >> (i - oracle_sack.skip) & 1 &&
		    !(scb->sacked & TCPCB_SACKED_ACKED)) {
			scb->sacked = tcp_sacktag_one(sk, state, scb->sacked, scb->seq,
						      scb->end_seq, false, 1, skb->len,
						      tcp_skb_timestamp_us(skb));
			tcp_rate_skb_delivered(sk, skb, state->rate);
			if (scb->sacked & TCPCB_SACKED_ACKED)
				list_del_init(&skb->tcp_tsorted_anchor);
			if (!before(scb->seq, tcp_highest_sack_seq(tp)))
				tcp_advance_highest_sack(sk, skb);
		}
		i++;
	}

	if (inet_csk(sk)->icsk_ca_state != TCP_CA_Loss || tp->undo_marker)
		tcp_check_sack_reordering(sk, state->reord, 0);
	return state->flag;
}

/* What left, in order: every number that a receiver could tell apart. */
static void oracle_note(u32 *digest, u32 value)
{
	*digest = (*digest ^ value) * 16777619U;
	*digest ^= *digest >> 15;
}

static const struct tcp_congestion_ops *oracle_latest;

/*
 * As __tcp_transmit_skb() does it, for what the window's functions see of it: time and event, then
 * congestion in this machine, then the lists.
 */
static int tcp_transmit_skb(struct sock *sk, struct sk_buff *skb, int clone_it, gfp_t gfp)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tp->oracle_blocked)
		return -11;
	if (tcp_snd_cwnd(tp) < tp->oracle_floor)
		tp->oracle_below++;

	tcp_event_data_sent(tp, sk);
	tp->oracle_sent++;
	oracle_note(&tp->oracle_digest, TCP_SKB_CB(skb)->seq);
	if (tp->oracle_local_drops) {
		tp->oracle_local_drops--;
		tcp_enter_cwr(sk);
	}

	skb->skb_mstamp_ns = tp->tcp_wstamp_ns;
	list_move_tail(&skb->tcp_tsorted_anchor, &tp->tsorted_sent_queue);
	TCP_SKB_CB(skb)->tx.delivered_mstamp = oracle_clock;
	TCP_SKB_CB(skb)->tx.delivered = tp->delivered;
	return 0;
}

static int __tcp_retransmit_skb(struct sock *sk, struct sk_buff *skb, int segs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	int err;

	if (!before(TCP_SKB_CB(skb)->seq, tcp_wnd_end(tp)) && TCP_SKB_CB(skb)->seq != tp->snd_una)
		return -11;
	tp->total_retrans++;
	err = tcp_transmit_skb(sk, skb, 1, GFP_ATOMIC);
	if (!err)
		TCP_SKB_CB(skb)->sacked |= TCPCB_EVER_RETRANS;
	return err;
}

/* The retransmission timer, for an established connection. */
static void tcp_retransmit_timer(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	if (!tcp_sk(sk)->packets_out)
		return;
	tcp_enter_loss(sk);
	icsk->icsk_retransmits++;
	if (tcp_retransmit_skb(sk, tcp_rtx_queue_head(sk), 1) > 0) {
		tcp_reset_xmit_timer(sk, ICSK_TIME_RETRANS, HZ / 2, false);
		return;
	}
	icsk->icsk_backoff++;
	icsk->icsk_rto = min(icsk->icsk_rto << 1, tcp_rto_max(sk));
	tcp_reset_xmit_timer(sk, ICSK_TIME_RETRANS, icsk->icsk_rto, false);
}

void __tcp_send_ack(struct sock *sk, u32 rcv_nxt, u16 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);

	oracle_note(&tp->oracle_acks, rcv_nxt);
	oracle_note(&tp->oracle_acks, tp->ecn_flags);
}

int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	oracle_latest = ops;
	return 0;
}

void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops)
{
	oracle_latest = NULL;
}

const struct tcp_congestion_ops *oracle_registered(void)
{
	return oracle_latest;
}

int param_set_uint_minmax(const char *val, const struct kernel_param *kp, unsigned int low,
			  unsigned int high)
{
	return 0;
}

int param_get_uint(char *buffer, const struct kernel_param *kp)
{
	return 0;
}

static int oracle_load(void)
{
	return oracle_module_init();
}

static void oracle_set_parameter(uint32_t which, uint32_t value)
{
	if (which == ORACLE_SHIFT_G)
		dctcp_shift_g = value;
	else if (which == ORACLE_ALPHA_ON_INIT)
		dctcp_alpha_on_init = value;
}

static void oracle_get_private(const struct tcp_sock *tp, struct oracle_private *data)
{
	const struct dctcp *ca = inet_csk_ca(tp);

	*data = (struct oracle_private){
		.old_delivered = ca->old_delivered,
		.old_delivered_ce = ca->old_delivered_ce,
		.prior_rcv_nxt = ca->prior_rcv_nxt,
		.alpha = ca->dctcp_alpha,
		.next_seq = ca->next_seq,
		.ce_state = ca->ce_state,
		.loss_cwnd = ca->loss_cwnd,
		.plb_rounds = ca->plb.consec_cong_rounds,
		.plb_pause_until = ca->plb.pause_until,
	};
}

static void oracle_set_private(struct tcp_sock *tp, const struct oracle_private *data)
{
	struct dctcp *ca = inet_csk_ca(tp);

	ca->old_delivered = data->old_delivered;
	ca->old_delivered_ce = data->old_delivered_ce;
	ca->prior_rcv_nxt = data->prior_rcv_nxt;
	ca->dctcp_alpha = data->alpha;
	ca->next_seq = data->next_seq;
	ca->ce_state = data->ce_state;
	ca->loss_cwnd = data->loss_cwnd;
	ca->plb.consec_cong_rounds = data->plb_rounds;
	ca->plb.pause_until = data->plb_pause_until;
}

static int oracle_rebuild_header(struct sock *sk)
{
	return 0;
}

/* The end of the handshake, as tcp_rcv_state_process() and tcp_finish_connect() have it. */
static void oracle_open(struct tcp_sock *tp, const struct oracle_start *start,
			const struct tcp_congestion_ops *ops)
{
	static const struct inet_connection_sock_af_ops af_ops = {
		.rebuild_header = oracle_rebuild_header,
	};
	struct inet_connection_sock *icsk = &tp->inet_conn;
	struct sock *sk = &icsk->sk;
	bool passive = start->flags & ORACLE_START_PASSIVE;
	size_t i;

	memset(tp, 0, sizeof(*tp));
	INIT_LIST_HEAD(&tp->tsorted_sent_queue);
	for (i = 0; i < ARRAY_SIZE(tp->oracle_pool); i++) {
		tp->oracle_pool[i].next = tp->oracle_free;
		tp->oracle_free = &tp->oracle_pool[i];
	}
	tp->oracle_low = UINT32_MAX;

	sk->sk_socket = &sk->socket;
	sk->dst = &sk->route;
	sk->route.initcwnd = start->initcwnd;
	sk->sk_max_pacing_rate = ~0UL;
	sk->sk_pacing_rate = ~0UL;
	sk->sk_pacing_shift = 10;
	sk->sk_gso_max_size = 65536;
	sk->sk_gso_max_segs = 65535;
	icsk->icsk_af_ops = &af_ops;
	icsk->icsk_ca_ops = ops;
	icsk->icsk_rto = TCP_TIMEOUT_INIT;

	tp->snd_una = tp->snd_nxt = tp->write_seq = tp->snd_up = start->isn;
	tp->high_seq = tp->cwnd_usage_seq = tp->rtt_seq = start->isn;
	tp->rcv_nxt = start->rcv_isn;
	tp->mss_cache = start->mss;
	tp->snd_wnd = tp->max_window = 1U << 30;
	tp->rcv_wnd = 1U << 20;
	tp->snd_cwnd_clamp = start->clamp;
	tp->snd_ssthresh = start->ssthresh;
	tp->reordering = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_reordering);
	tp->min_rtt = ~0U;
	tp->rack.reo_wnd_steps = 1;
	tp->delivered = tp->delivered_ce = start->delivered;
	tp->total_retrans = start->syns;
	tp->undo_marker = start->syns ? start->isn : 0;
	tp->lsndtime = tcp_jiffies32;
	tp->rx_opt.sack_ok = !!(start->flags & ORACLE_START_SACK);
	tp->rx_opt.saw_tstamp = !!(start->flags & ORACLE_START_TIMESTAMPS);
	if (start->flags & ORACLE_START_ACCECN)
		tp->ecn_flags = TCP_ECN_MODE_ACCECN;
	else if (start->flags & ORACLE_START_ECN)
		tp->ecn_flags = TCP_ECN_MODE_RFC3168;
	tcp_mstamp_refresh(tp);

	sk->sk_state = passive ? TCP_SYN_RECV : TCP_ESTABLISHED;
	tcp_init_transfer(sk, 0, NULL);
	if (passive) {
		sk->sk_state = TCP_ESTABLISHED;
		if (!icsk->icsk_ca_ops->cong_control)
			tcp_update_pacing_rate(sk);
	}
	tp->undo_marker = 0;
	if (start->cwnd)
		tcp_snd_cwnd_set(tp, start->cwnd);
}

/* __tcp_push_pending_frames(), as every ACK and every write ends. */
static void oracle_push(struct sock *sk)
{
	if (tcp_send_head(sk))
		__tcp_push_pending_frames(sk, tcp_current_mss(sk), TCP_NAGLE_OFF);
}

/*
 * tcp_sendmsg_locked(), for @n full segments: each is queued, which is when core TCP looks at idle
 * time; the first is pushed by itself, the rest at the end. Where nothing is in flight and data
 * waits all the same (for the peer's window, or held here), no more is written.
 */
static void oracle_write(struct tcp_sock *tp, u32 n)
{
	struct sock *sk = (struct sock *)tp;

	while (n-- && tp->oracle_packets < ARRAY_SIZE(tp->oracle_pool) &&
	       (tp->packets_out || !tcp_send_head(sk))) {
		struct sk_buff *skb = tp->oracle_free;
		struct tcp_skb_cb *scb = TCP_SKB_CB(skb);

		tp->oracle_free = skb->next;
		tp->oracle_packets++;
		memset(skb, 0, sizeof(*skb));
		INIT_LIST_HEAD(&skb->tcp_tsorted_anchor);
		skb->len = tp->mss_cache;
		scb->seq = tp->write_seq;
		scb->end_seq = tp->write_seq + skb->len;
		oracle_append(&sk->sk_write_queue, skb);
		tcp_slow_start_after_idle_check(sk);
		tp->write_seq = scb->end_seq;
		if (skb == tcp_send_head(sk) && n)
			tcp_push_one(sk, tp->mss_cache);
	}
	oracle_push(sk);
}

static void oracle_ack(struct tcp_sock *tp, const struct oracle_step *step)
{
	struct sock *sk = (struct sock *)tp;
	struct sk_buff ack = { .header.ece = step->c & ORACLE_ACK_ECE }, *skb;
	u32 acked = 0, end = tp->snd_una, flags = step->c;
	bool sack = tp->rx_opt.sack_ok;

	ack.header.ace = 1 + step->a % 4;
	skb_rbtree_walk(skb, &sk->tcp_rtx_queue) {
		/* A receiver acknowledges all that follows without a hole. */
		if (acked >= step->a && ((flags & ORACLE_ACK_RENEGE) ||
					 !(TCP_SKB_CB(skb)->sacked & TCPCB_SACKED_ACKED) || !sack))
			break;
		end = TCP_SKB_CB(skb)->end_seq;
		acked++;
	}
	if ((flags & ORACLE_ACK_MIDDLE) && skb && (u32)(end - TCP_SKB_CB(skb)->seq) < tp->mss_cache / 2)
		end = TCP_SKB_CB(skb)->seq + tp->mss_cache / 2;
	/* Not while a reordering timer is overdue: see run.rs. */
	if ((flags & ORACLE_ACK_OLD) &&
	    !(tp->inet_conn.icsk_pending == ICSK_TIME_REO_TIMEOUT &&
	      !time_after(tcp_timeout_expires(sk), jiffies)))
		end = tp->snd_una - tp->mss_cache;

	oracle_sack.skip = acked + 1;
	oracle_sack.mask = sack ? step->b : 0;
	/* Not where nothing is in flight and data waits: see run.rs. */
	oracle_sack.dsack = sack && (flags & ORACLE_ACK_DSACK) &&
			    (tp->packets_out || !tcp_send_head(sk));
	TCP_SKB_CB(&ack)->seq = tp->rcv_nxt;
	TCP_SKB_CB(&ack)->end_seq = tp->rcv_nxt + !!(flags & ORACLE_ACK_DATA);
	TCP_SKB_CB(&ack)->ack_seq = end;
	/* Where the option is, in the kernel; here, that there is one. */
	TCP_SKB_CB(&ack)->sacked = oracle_sack.mask || oracle_sack.dsack;
	ack.gso_segs = 1;
	if (flags & ORACLE_ACK_SMALL_WINDOW) {
		tp->rx_opt.snd_wscale = 0;
		ack.header.window = 4 * tp->mss_cache;
	} else {
		tp->rx_opt.snd_wscale = 14;
		ack.header.window = flags & ORACLE_ACK_NO_WINDOW ? 0 : 65535;
	}
	if (tp->rx_opt.saw_tstamp)
		tp->rx_opt.rcv_tsecr = (flags & ORACLE_ACK_OLD_ECHO) && tp->retrans_stamp ?
				       tp->retrans_stamp - 1 : (u32)(oracle_clock / 1000);

	tcp_mstamp_refresh(tp);
	tcp_ack(sk, &ack, FLAG_SLOWPATH);
	oracle_push(sk);
}

/* tcp_rcv_established() and tcp_data_queue(), as far as a mark goes. */
static void oracle_receive(struct tcp_sock *tp, const struct oracle_step *step)
{
	struct inet_connection_sock *icsk = &tp->inet_conn;
	struct sk_buff skb = { .cb.ip_dsfield = step->b & INET_ECN_MASK };

	icsk->icsk_ack.pending = step->c ? ICSK_ACK_SCHED | ICSK_ACK_TIMER : 0;
	tcp_data_ecn_check(&icsk->sk, &skb);
	tp->rcv_nxt += step->a;
}

/* tcp_simple_retransmit(), where the packets that became too long are those of @mask. */
static void oracle_pmtu(struct tcp_sock *tp, u32 mask)
{
	struct sock *sk = (struct sock *)tp;
	struct sk_buff *skb;

	skb_rbtree_walk(skb, &sk->tcp_rtx_queue) {
		if (mask & 1)
			tcp_mark_skb_lost(sk, skb);
		mask >>= 1;
	}
	if (!tp->lost_out)
		return;
	if (tcp_is_reno(tp))
		tcp_limit_reno_sacked(tp);
	tcp_mstamp_refresh(tp);
	tcp_non_congestion_loss_retransmit(sk);
}

static void oracle_step(struct tcp_sock *tp, const struct oracle_step *step)
{
	struct sock *sk = (struct sock *)tp;

	switch (step->kind) {
	case ORACLE_TIMER:
		/* A retransmission by these timers does not look at the window. */
		if (tp->inet_conn.icsk_pending != ICSK_TIME_REO_TIMEOUT)
			tp->oracle_floor = 0;
		tcp_write_timer_handler(sk);
		break;
	case ORACLE_WRITE:
		oracle_write(tp, step->a);
		break;
	case ORACLE_PUSH:
		oracle_push(sk);
		break;
	case ORACLE_ACK:
		oracle_ack(tp, step);
		break;
	case ORACLE_RECEIVE:
		oracle_receive(tp, step);
		break;
	case ORACLE_LOCAL_DROPS:
		tp->oracle_local_drops = step->a;
		break;
	case ORACLE_PMTU:
		oracle_pmtu(tp, step->a);
		break;
	case ORACLE_SOCKET:
		sk->sk_socket = step->a & ORACLE_SOCKET_ORPHAN ? NULL : &sk->socket;
		sk->socket.flags = step->a & ORACLE_SOCKET_NO_SPACE ? 1UL << SOCK_NOSPACE : 0;
		tp->oracle_blocked = step->a & ORACLE_SOCKET_BLOCKED;
		tp->oracle_corked = step->a & ORACLE_SOCKET_CORKED;
		break;
	case ORACLE_LIMITS:
		tp->snd_cwnd_clamp = step->a;
		sk->route.initcwnd = step->b;
		sk->sk_max_pacing_rate = step->c ? step->c * 1000UL : ~0UL;
		break;
	case ORACLE_CHOOSE:
		tcp_init_congestion_control(sk);
		break;
	case ORACLE_SET_CWND:
		tcp_snd_cwnd_set(tp, max(step->a, 1U));
		break;
	}
}

const struct oracle_core *oracle_core(void)
{
	static const struct oracle_core core = {
		.load = oracle_load,
		.registered = oracle_registered,
		.set_parameter = oracle_set_parameter,
		.open = oracle_open,
		.step = oracle_step,
		.get_private = oracle_get_private,
		.set_private = oracle_set_private,
	};

	return &core;
}
