/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C for what Rust cannot call: macros, inline functions and bit-fields. Each function does that
 * one thing and decides nothing.
 */
#ifndef LOWTAIL_HELPERS_H
#define LOWTAIL_HELPERS_H

#include <linux/types.h>
#include <linux/workqueue.h>

struct hrtimer;
struct ctl_table;
struct ctl_table_header;
struct net;
struct proc_dir_entry;
struct seq_file;
struct sock;
struct socket;
struct tcp_congestion_ops;

/* tcp_helpers.c */
u8 lowtail_ca_state(const struct sock *sk);
bool lowtail_ecn_mode_any(const struct sock *sk);
void lowtail_ecn_dontxmit(struct sock *sk);
u32 lowtail_packets_in_flight(const struct sock *sk);
bool lowtail_is_cwnd_limited(const struct sock *sk);
bool lowtail_sndbuf_limited(const struct sock *sk);
u32 lowtail_init_cwnd(const struct sock *sk);
bool lowtail_reordering_timer_fired(const struct sock *sk);
bool lowtail_ask_for_pacing(struct sock *sk);
void lowtail_end_pacing(struct sock *sk);
void lowtail_hold_back(struct sock *sk, u32 usecs);
u32 lowtail_random(void);
void lowtail_swap_ca_ops(struct sock *sk, const struct tcp_congestion_ops *ops);

/* floor_helpers.c */
void lowtail_trace_floor_raised(const struct sock *sk, u8 ca_state, u32 prior_cwnd, u32 cwnd,
				u32 alpha);
void lowtail_trace_floor_paced(const struct sock *sk, u32 window, u32 rtt_us, u32 alpha);

/* hook_helpers.c */
struct ctl_table_header *lowtail_register_sysctls(struct net *net, const char *path,
						  struct ctl_table *table, size_t n);
void *lowtail_net_generic(const struct net *net, unsigned int id);
struct net *lowtail_seq_file_net(struct seq_file *seq);
bool lowtail_proc_create(struct net *net, const char *name, int (*show)(struct seq_file *, void *));
void lowtail_proc_remove(struct net *net, const char *name);
u64 __percpu *lowtail_percpu_alloc(unsigned int n);
void lowtail_percpu_free(u64 __percpu *counters);
void lowtail_percpu_inc(u64 __percpu *counters, unsigned int i);
u64 lowtail_percpu_sum(u64 __percpu *counters, unsigned int i);
void lowtail_work_init(struct delayed_work *work, work_func_t func);
void lowtail_work_schedule(struct delayed_work *work, unsigned int msecs);

/* push_helpers.c */
u8 lowtail_nonagle(const struct sock *sk);
bool lowtail_on_loopback_route(const struct sock *sk);
bool lowtail_has_ktls(const struct sock *sk);
/*
 * What lowtail_bound_hold() found: no hold, or one that goes on under its timer; a new one under a
 * timer; one that a timer was set for.
 */
enum { LOWTAIL_NO_NEW_HOLD, LOWTAIL_HELD, LOWTAIL_HELD_AND_SET };
u32 lowtail_bound_hold(struct sock *sk, int size_goal, u32 usecs);
struct sock *lowtail_pacing_timer_sock(struct hrtimer *timer);
bool lowtail_needs_internal_pacing(const struct sock *sk);
bool lowtail_is_held(const struct sock *sk);
void lowtail_trace_push(const struct sock *sk, u32 verdict, bool held, bool spliced);
void lowtail_trace_deadline(const struct sock *sk, bool held);
struct socket *lowtail_probe_open(void);
struct sock *lowtail_probe_sock(const struct socket *sock);
int lowtail_probe_push(struct socket *sock);
void lowtail_probe_close(struct socket *sock);

#endif
