/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the functions that the build cuts out of net/ipv4 need of the kernel's headers, for the host.
 *
 * Three kinds of things are here: types and macros of the kernel's C; `struct tcp_sock` with the
 * members that those functions touch; and the ends of the stack, where packets, timers and
 * statistics leave TCP. A packet is one full segment, a retransmission queue is a list, a clock is
 * a number. Enumerations, flags, `struct tcp_congestion_ops` and the like are not here: they are
 * cut out of the kernel source too (OUT_DIR/cut.h).
 */
#ifndef ORACLE_STANDIN_H
#define ORACLE_STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8, __u8;
typedef uint16_t u16, __u16;
typedef uint32_t u32, __u32;
typedef uint64_t u64, __u64;
typedef int8_t s8, __s8;
typedef int16_t s16, __s16;
typedef int32_t s32, __s32;
typedef int64_t s64, __s64;
typedef unsigned int gfp_t;
typedef s64 ktime_t;
typedef struct { int counter; } atomic_t;

#define IS_ENABLED(option)	0
#define ____cacheline_aligned_in_smp
#define __read_mostly
#define __bpf_kfunc
#define __init
#define __exit
#define __maybe_unused		__attribute__((unused))
#define fallthrough		__attribute__((fallthrough))
#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v)	((void)(*(volatile __typeof__(x) *)&(x) = (v)))
#define smp_store_release(p, v)	WRITE_ONCE(*(p), v)
#define smp_load_acquire(p)	READ_ONCE(*(p))
#define rcu_access_pointer(p)	(p)
#define prefetch(p)		((void)(p))
#define BUILD_BUG_ON(condition)	_Static_assert(!(condition), #condition)
/* A warning of the kernel's is not a difference. */
#define WARN_ON(condition)	(!!(condition))
#define WARN_ON_ONCE(condition)	(!!(condition))
#define BUG_ON(condition)	((void)(condition))
#define BIT(n)			(1U << (n))
#define BITS_PER_TYPE(type)	(sizeof(type) * 8)
#define container_of(p, type, member)	((type *)((char *)(p) - offsetof(type, member)))
#define ARRAY_SIZE(a)		(sizeof(a) / sizeof((a)[0]))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))

/* The kernel's, without its check that both sides have the same type. */
#define min(a, b)		({ __auto_type _a = (a); __auto_type _b = (b); _a < _b ? _a : _b; })
#define max(a, b)		({ __auto_type _a = (a); __auto_type _b = (b); _a > _b ? _a : _b; })
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define max_t(type, a, b)	max((type)(a), (type)(b))
#define clamp(v, low, high)	min(max(v, low), high)
#define min_not_zero(a, b)	({ __auto_type _x = (a); __auto_type _y = (b); \
				   _x == 0 ? _y : (_y == 0 ? _x : min(_x, _y)); })
#define div_u64(a, b)		((u64)(a) / (u32)(b))
#define do_div(n, base)		({ u32 _base = (base); u32 _rest = (u64)(n) % _base; \
				   (n) = (u64)(n) / _base; _rest; })

/* Debian's. */
#define HZ			250
#define USEC_PER_SEC		1000000L
#define USEC_PER_MSEC		1000L
#define NSEC_PER_USEC		1000L
#define NSEC_PER_MSEC		1000000L
#define USEC_PER_JIFFY		(USEC_PER_SEC / HZ)

extern unsigned long jiffies;
/* Microseconds since the beginning of the history. */
extern u64 oracle_clock;

#define tcp_jiffies32		((u32)jiffies)
#define jiffies_to_usecs(j)	((unsigned int)((j) * USEC_PER_JIFFY))
#define jiffies_to_msecs(j)	((unsigned int)((j) * USEC_PER_JIFFY / 1000))
#define usecs_to_jiffies(us)	((unsigned long)((u32)(us) + USEC_PER_JIFFY - 1) / USEC_PER_JIFFY)
#define msecs_to_jiffies(ms)	usecs_to_jiffies((ms) * 1000)
#define time_after(a, b)	((long)((b) - (a)) < 0)

struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list->prev = list;
}

static inline void list_del(struct list_head *entry)
{
	entry->next->prev = entry->prev;
	entry->prev->next = entry->next;
}

static inline void list_del_init(struct list_head *entry)
{
	list_del(entry);
	INIT_LIST_HEAD(entry);
}

static inline void list_move_tail(struct list_head *entry, struct list_head *head)
{
	list_del(entry);
	entry->prev = head->prev;
	entry->next = head;
	head->prev->next = entry;
	head->prev = entry;
}

#define list_entry(p, type, member)	container_of(p, type, member)
#define list_for_each_entry_safe(pos, n, head, member)					\
	for (pos = list_entry((head)->next, __typeof__(*pos), member),			\
	     n = list_entry(pos->member.next, __typeof__(*pos), member);		\
	     &pos->member != (head);							\
	     pos = n, n = list_entry(n->member.next, __typeof__(*n), member))

struct module;
struct sock;
struct tcp_sock;
struct sk_buff;
struct kernel_param;

struct kernel_param_ops {
	unsigned int flags;
	int (*set)(const char *val, const struct kernel_param *kp);
	int (*get)(char *buffer, const struct kernel_param *kp);
	void (*free)(void *arg);
};

/* What the helpers' header of rust/net mentions and this test does not use. */
typedef void (*work_func_t)(void *work);
struct delayed_work {
	int unused;
};
#define __percpu
#define FTRACE_OPS_FL_RECURSION		0
#define FTRACE_OPS_FL_SAVE_ARGS		0
#define MSG_SPLICE_PAGES		0

#include "cut.h"

/*
 * Packets. Each is one full segment, so that there is nothing to split, to merge or to shift.
 */

struct tcphdr {
	u16 window;
	bool syn, ece;
	u8 ace;
};

struct tcp_skb_cb {
	u32 seq;
	u32 end_seq;
	u16 tcp_flags;
	u8 sacked;
	u8 ip_dsfield;
	u32 ack_seq;
	struct {
		u32 is_app_limited;
		u32 delivered_ce;
		u32 delivered;
		u64 first_tx_mstamp;
		u64 delivered_mstamp;
	} tx;
};

struct sk_buff {
	/* In the write queue, then in the retransmission queue, then in the free list. */
	struct sk_buff *next;
	struct list_head tcp_tsorted_anchor;
	u32 len;
	u64 skb_mstamp_ns;
	struct tcp_skb_cb cb;
	/* Of ACKs that arrive. */
	struct tcphdr header;
	u16 gso_segs;
};

struct skb_list {
	struct sk_buff *first, *last;
	void *rb_node;
};

#define TCP_SKB_CB(skb)			(&((struct sk_buff *)(skb))->cb)
#define tcp_hdr(skb)			(&(skb)->header)
#define ntohs(x)			(x)
#define skb_shinfo(skb)			(skb)
#define tcp_skb_pcount(skb)		((void)(skb), 1)
#define tcp_skb_mss(skb)		((skb)->len)
#define tcp_skb_seglen(skb)		((skb)->len)
#define tcp_set_skb_tso_segs(skb, mss)	((void)(skb), 1U)
#define tcp_init_tso_segs(skb, mss)	((void)(skb))
#define skb_peek(queue)			((queue)->first)
#define skb_rb_first(root)		((root)->first)
#define skb_rb_last(root)		((root)->last)
#define skb_rb_next(skb)		((skb)->next)
#define RB_EMPTY_ROOT(root)		(!(root)->first)
#define skb_queue_empty(queue)		(!(queue)->first)
#define skb_rbtree_walk(skb, root)	for (skb = (root)->first; skb; skb = skb->next)
#define skb_rbtree_walk_from(skb)	for (; skb; skb = skb->next)
#define skb_mstamp_us(skb)		((skb)->skb_mstamp_ns / 1000)

/*
 * The socket.
 */

struct dst_entry {
	u32 initcwnd;
};

#define RTAX_INITCWND		0
#define dst_metric(dst, metric)	((dst)->initcwnd)

struct netns_ipv4 {
	u32 sysctl_tcp_reordering;
	u32 sysctl_tcp_max_reordering;
	u32 sysctl_tcp_recovery;
	u32 sysctl_tcp_frto;
	u32 sysctl_tcp_early_retrans;
	u32 sysctl_tcp_slow_start_after_idle;
	u32 sysctl_tcp_pacing_ss_ratio;
	u32 sysctl_tcp_pacing_ca_ratio;
	u32 sysctl_tcp_min_tso_segs;
	u32 sysctl_tcp_tso_rtt_log;
	u32 sysctl_tcp_plb_enabled;
	u32 sysctl_tcp_plb_cong_thresh;
	u32 sysctl_tcp_plb_rehash_rounds;
	u32 sysctl_tcp_plb_idle_rehash_rounds;
	u32 sysctl_tcp_plb_suspend_rto_sec;
};

struct net {
	struct netns_ipv4 ipv4;
};

extern struct net oracle_net;
#define sock_net(sk)		((void)(sk), &oracle_net)

struct socket {
	unsigned long flags;
};

#define SOCK_NOSPACE			2
#define test_bit(bit, words)		((*(words) >> (bit)) & 1)

struct timer_list {
	unsigned long expires;
};

struct sock {
	struct {
		u8 skc_state;
	} __sk_common;
	struct socket *sk_socket;
	struct socket socket;
	struct dst_entry *dst;
	struct dst_entry route;
	struct skb_list sk_write_queue;
	struct skb_list tcp_rtx_queue;
	struct timer_list tcp_retransmit_timer;
	u32 sk_pacing_status;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_shift;
	u32 sk_gso_max_size;
	u32 sk_gso_max_segs;
	gfp_t sk_allocation;
	int sk_err_soft;
};

#define sk_state		__sk_common.skc_state
#define __sk_dst_get(sk)	((sk)->dst)

struct inet_connection_sock_af_ops {
	int (*rebuild_header)(struct sock *sk);
};

struct inet_connection_sock {
	struct sock sk;
	const struct inet_connection_sock_af_ops *icsk_af_ops;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u32 icsk_rto;
	u8 icsk_ca_state:5,
	   icsk_ca_initialized:1;
	u8 icsk_retransmits;
	u8 icsk_pending;
	u8 icsk_backoff;
	u8 icsk_probes_out;
	u32 icsk_probes_tstamp;
	u32 icsk_pmtu_cookie;
	struct {
		u8 pending;
		u8 retry;
		u32 lrcvtime;
		u32 ato;
	} icsk_ack;
	struct timer_list icsk_delack_timer;
	struct {
		u32 probe_size;
	} icsk_mtup;
	/* As long as the kernel's. */
	u64 icsk_ca_priv[104 / sizeof(u64)];
#define ICSK_CA_PRIV_SIZE sizeof(((struct inet_connection_sock *)0)->icsk_ca_priv)
};

/*
 * The numbers of struct tcp_sock: members here, and what the two sides are compared by. Members
 * that are not of a sender's window are here too: an unlike one explains the first unlike window.
 */
#define TCP_SOCK_NUMBERS(X)								\
	X(snd_cwnd) X(snd_ssthresh) X(snd_cwnd_cnt) X(prior_cwnd) X(prior_ssthresh)	\
	X(prr_delivered) X(prr_out) X(snd_cwnd_used) X(snd_cwnd_stamp)			\
	X(max_packets_out) X(cwnd_usage_seq) X(is_cwnd_limited)				\
	X(packets_out) X(sacked_out) X(lost_out) X(retrans_out) X(lost)			\
	X(delivered) X(delivered_ce) X(snd_una) X(snd_nxt) X(high_seq) X(undo_marker)	\
	X(tlp_high_seq) X(tlp_retrans) X(frto) X(reordering) X(reord_seen)		\
	X(retrans_stamp) X(total_retrans) X(is_sack_reneg) X(lsndtime) X(srtt_us)	\
	X(mdev_us) X(mdev_max_us) X(rttvar_us) X(rtt_seq) X(min_rtt) X(write_seq)	\
	X(rcv_nxt) X(mss_cache) X(snd_cwnd_clamp) X(snd_wnd)		\
	X(dsack_dups) X(plb_rehash)							\
	/* Of the oracle: */								\
	X(oracle_sent) X(oracle_digest) X(oracle_acks) X(oracle_ect)

struct tcp_sock {
	struct inet_connection_sock inet_conn;
#define X(member) u32 member;
	TCP_SOCK_NUMBERS(X)
#undef X
	int undo_retrans;
	u8 ecn_flags;
	u64 tcp_mstamp;
	u64 tcp_clock_cache;
	u64 tcp_wstamp_ns;
	u64 first_tx_mstamp;
	u64 bytes_acked;
	u64 app_limited;
	u64 delivered_mstamp;
	u32 snd_wl1;
	u32 snd_up;
	u32 max_window;
	u32 pred_flags;
	u32 rcv_tstamp;
	u32 rcv_wnd;
	u32 rto_stamp;
	u32 total_rto;
	u32 total_rto_recoveries;
	u32 total_rto_time;
	bool tcp_usec_ts;
	bool syn_data;
	bool repair;
	u8 repair_queue;
	void *fastopen_rsk;
	struct sk_buff *highest_sack;
	struct sk_buff *retransmit_skb_hint;
	struct list_head tsorted_sent_queue;
	struct {
		u64 mstamp;
		u32 rtt_us;
		u32 end_seq;
		u32 last_delivered;
		u8 reo_wnd_steps;
		u8 reo_wnd_persist;
		u8 dsack_seen;
		u8 advanced;
	} rack;
	struct {
		u32 rcv_tsecr;
		u8 saw_tstamp;
		u8 sack_ok;
		u8 snd_wscale;
	} rx_opt;
	struct {
		u32 probe_seq_start, probe_seq_end;
	} mtu_probe;

	/* Of the oracle: the least window that was set since this was last written. */
	u32 oracle_low;
	/* Packets that left although the window was below this. */
	u32 oracle_floor;
	u32 oracle_below;
	/* The next transmissions meet congestion in this machine (NET_XMIT_CN). */
	u32 oracle_local_drops;
	/* Nothing is sent now: pacing, or TSQ. */
	bool oracle_blocked;
	/* Nothing of the write queue is sent now: TCP_CORK. */
	bool oracle_corked;
	/* Packets for the queues. */
	struct sk_buff *oracle_free;
	u32 oracle_packets;
	struct sk_buff oracle_pool[256];
};

#define tcp_sk(p)		((struct tcp_sock *)(p))
#define inet_csk(p)		((struct inet_connection_sock *)(p))
#define inet_csk_ca(p)		((void *)inet_csk(p)->icsk_ca_priv)

/* The window that the last word is about, and its low-water mark. */
static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 val)
{
	tp->snd_cwnd = val;
	if (val < tp->oracle_low)
		tp->oracle_low = val;
}

/*
 * The inline functions of the kernel's headers that are cut out declare each other here.
 */
#include "cut_inline_prototypes.h"

/*
 * The ends of the stack.
 */

/* include/linux/tcp.h and net/ipv4/tcp_output.c, of which the mss never changes by itself. */
#define tcp_current_mss(sk)			(tcp_sk(sk)->mss_cache)
#define tcp_sync_mss(sk, mtu)			((void)0)
#define tcp_urg_mode(tp)			0
#define tcp_skb_is_last(sk, skb)		(!(skb)->next)

static inline void tcp_mstamp_refresh(struct tcp_sock *tp)
{
	tp->tcp_mstamp = oracle_clock;
	tp->tcp_clock_cache = oracle_clock * NSEC_PER_USEC;
	tp->tcp_wstamp_ns = tp->tcp_clock_cache;
}
#define tcp_mstamp_refresh_inline		tcp_mstamp_refresh

#define tcp_time_stamp_ms(tp)			((u32)((tp)->tcp_mstamp / 1000))
#define SKB_CLOCK_MONOTONIC			0
#define skb_set_delivery_time(skb, time, clock)	((skb)->skb_mstamp_ns = (time))
#define TCP_SEND_QUEUE				2

/* The least RTT, without the filter's window of five minutes. */
#define tcp_min_rtt(tp)				((tp)->min_rtt)
static inline void tcp_update_rtt_min(struct sock *sk, u32 rtt_us, const int flag)
{
	if (rtt_us && rtt_us < tcp_sk(sk)->min_rtt)
		tcp_sk(sk)->min_rtt = rtt_us;
}
#define tcp_bpf_rtt(sk, mrtt, srtt)		((void)0)
#define tcp_rtt_tsopt_us(tp, min_delta)		(-1L)
#define tcp_rto_min_us(sk)			((u32)jiffies_to_usecs(TCP_RTO_MIN))
#define tcp_rto_min(sk)				((u32)TCP_RTO_MIN)
#define tcp_rto_max(sk)				((u32)(120 * HZ))
#define tcp_pacing_delay(sk)			0
#define sk_reset_timer(sk, timer, when)		((timer)->expires = (when))
#define tcp_probe0_base(sk)			((unsigned long)inet_csk(sk)->icsk_rto)
#define tcp_probe0_when(sk, max_when)		((unsigned long)inet_csk(sk)->icsk_rto)
#define tcp_clamp_probe0_to_user_timeout(sk, when)	(when)

#define NET_INC_STATS(net, counter)		((void)0)
#define __NET_INC_STATS(net, counter)		((void)0)
#define NET_ADD_STATS(net, counter, n)		((void)(n))
#define TCP_ADD_STATS(net, counter, n)		((void)(n))
#define DBGUNDO(sk, what)			((void)0)
#define pr_debug(...)				((void)0)
#define tcp_warn_once(...)			((void)0)
#define _THIS_IP_				0
#define trace_tcp_cwnd_reduction_tp(...)	((void)0)
#define trace_tcp_cong_state_set(...)		((void)0)

#define tcp_chrono_start(sk, type)		((void)0)
#define tcp_chrono_stop(sk, type)		((void)0)
#define tcp_check_space(sk)			((void)0)
#define tcp_ack_tstamp(...)			((void)0)
#define sock_owned_by_me(sk)			((void)0)
#define tcp_snd_sne_update(tp, ack)		((void)0)
#define sk_dst_confirm(sk)			((void)0)
#define tcp_fast_path_check(sk)			((void)0)
#define tcp_send_challenge_ack(...)		((void)0)
#define tcp_replace_ts_recent(...)		0
#define tcp_update_wl(tp, seq)			((tp)->snd_wl1 = (seq))
#define tcp_ecn_accept_cwr(sk, skb)		((void)0)
/* The ACK says how many were marked, which may be more than it says were delivered. */
static inline u32 tcp_accecn_process(struct sock *sk, const struct sk_buff *skb, u32 delivered,
				     u32 bytes, int *flag)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_hdr(skb)->ece)
		return 0;
	*flag |= FLAG_ECE;
	tp->delivered_ce += tcp_hdr(skb)->ace;
	return tcp_hdr(skb)->ace;
}
#define tcp_accecn_option_beacon_check(sk)	0
#define tcp_enter_quickack_mode(sk, max)	((void)0)
#define inet_csk_inc_pingpong_cnt(sk)		((void)0)

#define tcp_simple_retransmit(sk)		((void)0)
#define tcp_verify_left_out(tp)			((void)0)
#define SKB_DROP_REASON_TCP_TOO_OLD_ACK		1
#define SKB_DROP_REASON_TCP_ACK_UNSENT_DATA	1
#define tcp_mtup_probe_success(sk)		((void)0)
#define tcp_mtup_probe_failed(sk)		((void)0)
#define tcp_mtup_init(sk)			((void)0)
#define tcp_mtu_probe(sk)			(-1)
#define tcp_init_metrics(sk)			((void)0)
#define bpf_skops_established(...)		((void)0)
#define tcp_init_buffer_space(sk)		((void)0)
#define tcp_tso_acked(sk, skb)			0U
#define tcp_fragment(...)			0
#define tso_fragment(...)			0
#define tcp_grow_skb(sk, skb, bytes)		((void)(bytes))
#define tcp_mss_split_point(sk, skb, mss, ...)	((u32)(mss))
#define tcp_tso_should_defer(...)		false
#define tcp_minshall_update(...)		((void)0)
#define skb_still_in_host_queue(sk, skb)	false
#define tcp_small_queue_check(sk, skb, factor)	(tcp_sk(sk)->oracle_blocked)
#define tcp_pacing_check(sk)			false
#define tcp_nagle_test(tp, skb, mss, nonagle)	(!(tp)->oracle_corked)
#define tcp_snd_wnd_test(tp, skb, mss)		(!after(TCP_SKB_CB(skb)->end_seq, tcp_wnd_end(tp)))
#define GFP_ATOMIC				0
#define sk_gfp_mask(sk, gfp)			(gfp)

#define INET_ECN_xmit(sk)			(tcp_sk(sk)->oracle_ect = 1)
#define INET_ECN_dontxmit(sk)			(tcp_sk(sk)->oracle_ect = 0)
#define INET_ECN_NOT_ECT			0
#define INET_ECN_ECT_0				2
#define INET_ECN_CE				3
#define INET_ECN_MASK				3

/* Any number below the bound will do, if both sides get the same one. */
#define get_random_u32_below(bound)		((bound) / 3)
#define get_random_u32()			0u

/* include/net/sock.h; one thread only. */
enum { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };
#define cmpxchg(p, old, new)						\
({									\
	__typeof__(*(p)) before_ = *(p);				\
									\
	if (before_ == (old))						\
		*(p) = (new);						\
	before_;							\
})
#define __sk_rethink_txhash_reset_dst(sk)	((void)0)

/* tcp_rate.c: of the sample only what picks the latest packet is needed. */
static inline void tcp_rate_gen(struct sock *sk, u32 delivered, u32 lost, bool is_sack_reneg,
				struct rate_sample *rs)
{
	rs->acked_sacked = delivered;
	rs->losses = lost;
}

/* Modules. */
#define THIS_MODULE				((struct module *)0)
#define MODULE_AUTHOR(name)			struct oracle_nothing
#define MODULE_LICENSE(name)			struct oracle_nothing
#define MODULE_DESCRIPTION(text)		struct oracle_nothing
#define MODULE_PARM_DESC(name, text)		struct oracle_nothing
#define module_param(name, type, mode)		struct oracle_nothing
#define module_param_cb(name, ops, arg, mode)	\
	static const void *const oracle_param_##name __maybe_unused = (ops)
#define EXPORT_SYMBOL_GPL(name)			struct oracle_nothing
#define module_init(function)			\
	static int (*const oracle_module_init)(void) __maybe_unused = function
#define module_exit(function)			\
	static void (*const oracle_module_exit)(void) __maybe_unused = function
#define BTF_KFUNCS_START(name)			struct oracle_nothing;
#define BTF_KFUNCS_END(name)
#define BTF_ID_FLAGS(...)
struct btf_kfunc_id_set {
	struct module *owner;
	const void *set;
};
#define tcp_dctcp_check_kfunc_ids		oracle_nothing
#define register_btf_kfunc_id_set(...)		0

int param_set_uint_minmax(const char *val, const struct kernel_param *kp, unsigned int low,
			  unsigned int high);
int param_get_uint(char *buffer, const struct kernel_param *kp);
int tcp_register_congestion_control(struct tcp_congestion_ops *ops);
void tcp_unregister_congestion_control(struct tcp_congestion_ops *ops);
void __tcp_send_ack(struct sock *sk, u32 rcv_nxt, u16 flags);
#define tcp_probe_timer(sk)			((void)0)

#include "cut_inline.h"

#endif
