/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The oracle as the test sees it: connections that the kernel's own C runs, one step at a time.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tcp_congestion_ops;
struct tcp_sock;

/* How a connection begins. */
struct oracle_start {
	uint32_t isn;			/* first sequence number sent */
	uint32_t rcv_isn;		/* first one received */
	uint32_t mss;			/* bytes */
	uint32_t flags;			/* ORACLE_START_* */
	uint32_t syns;			/* SYNs, or SYN-ACKs, that had to be repeated */
	uint32_t delivered;		/* tp->delivered and tp->delivered_ce, which wrap */
	uint32_t initcwnd;		/* of the route, packets; 0 is the default */
	uint32_t clamp;			/* of the route, packets */
	uint32_t cwnd;			/* window after the handshake where not 0, packets */
	uint32_t ssthresh;		/* packets */
};

enum {
	ORACLE_START_ECN = 1,		/* ECN was negotiated */
	ORACLE_START_ACCECN = 2,	/* it is accurate ECN */
	ORACLE_START_SACK = 4,
	ORACLE_START_TIMESTAMPS = 8,
	ORACLE_START_PASSIVE = 16,	/* passive open */
};

/* One step; what @a, @b and @c mean depends on @kind. */
struct oracle_step {
	uint32_t kind;			/* ORACLE_* */
	uint32_t a, b, c;
};

enum {
	/* a: jiffies pass, b: µs more. */
	ORACLE_TIME,
	/* The pending timer expires, at its time. */
	ORACLE_TIMER,
	/* The application writes. a: segments. */
	ORACLE_WRITE,
	/* Whatever may be sent is sent. */
	ORACLE_PUSH,
	/* An ACK. a: packets acknowledged cumulatively, b: bits of those SACKed, from the second on,
	 * c: ORACLE_ACK_*. */
	ORACLE_ACK,
	/* Data arrives. a: bytes, b: ECN field, c: a delayed ACK is pending. */
	ORACLE_RECEIVE,
	/* a: transmissions from now on that this machine itself drops. */
	ORACLE_LOCAL_DROPS,
	/* The path's MTU fell. a: bits of the packets that were lost. */
	ORACLE_PMTU,
	/* a: ORACLE_SOCKET_*. */
	ORACLE_SOCKET,
	/* a: snd_cwnd_clamp, b: the route's initcwnd, c: SO_MAX_PACING_RATE, KB/s (0: none). */
	ORACLE_LIMITS,
	/* The congestion control is chosen anew. */
	ORACLE_CHOOSE,
	/* The congestion window is set from outside (bpf_setsockopt()). a: packets. */
	ORACLE_SET_CWND,
	/* a: which of ORACLE_PARAMETERS, b: its value. */
	ORACLE_PARAMETER,
	ORACLE_KINDS,
};

enum {
	ORACLE_ACK_ECE = 1,
	ORACLE_ACK_DSACK = 2,		/* one more packet arrived twice */
	ORACLE_ACK_OLD_ECHO = 4,	/* the timestamp is older than the retransmission */
	ORACLE_ACK_MIDDLE = 8,		/* half a segment more is acknowledged */
	ORACLE_ACK_RENEGE = 16,		/* what was SACKed may stay unacknowledged */
	ORACLE_ACK_DATA = 32,		/* it came with data */
	ORACLE_ACK_OLD = 64,		/* the acknowledgment number is an old one */
	ORACLE_ACK_NO_WINDOW = 128,	/* the receiver's window is closed */
	ORACLE_ACK_SMALL_WINDOW = 256,	/* the receiver's window is 4 segments */
};

enum {
	ORACLE_SOCKET_NO_SPACE = 1,	/* the application waits for the send buffer */
	ORACLE_SOCKET_ORPHAN = 2,	/* the application has gone */
	ORACLE_SOCKET_BLOCKED = 4,	/* pacing or TSQ: nothing is sent */
	ORACLE_SOCKET_CORKED = 8,	/* nothing new is sent */
};

enum {
	ORACLE_SHIFT_G,
	ORACLE_ALPHA_ON_INIT,
	ORACLE_RTO_FLOOR,
	ORACLE_SLOW_START_AFTER_IDLE,
	ORACLE_PACING_SS_RATIO,
	ORACLE_PACING_CA_RATIO,
	ORACLE_REORDERING,
	ORACLE_PLB_ENABLED,
	ORACLE_PLB_CONG_THRESH,
	ORACLE_PLB_REHASH_ROUNDS,
	ORACLE_PLB_IDLE_REHASH_ROUNDS,
	ORACLE_FRTO,
	ORACLE_RECOVERY,
	ORACLE_EARLY_RETRANS,
	ORACLE_MIN_TSO_SEGS,
	ORACLE_PARAMETERS,
};

/* A connection's private data, whoever owns it. */
struct oracle_private {
	uint32_t old_delivered;
	uint32_t old_delivered_ce;
	uint32_t prior_rcv_nxt;
	uint32_t alpha;
	uint32_t next_seq;
	uint32_t ce_state;
	uint32_t loss_cwnd;
	uint32_t plb_rounds;
	uint32_t plb_pause_until;
};

/* Core TCP and tcp_dctcp, as the kernel has them or with one planted difference. */
struct oracle_core {
	/* Loads tcp_dctcp: 0 or an errno. */
	int (*load)(void);
	/* What it registered. */
	const struct tcp_congestion_ops *(*registered)(void);
	void (*set_parameter)(uint32_t which, uint32_t value);
	void (*open)(struct tcp_sock *tp, const struct oracle_start *start,
		     const struct tcp_congestion_ops *ops);
	void (*step)(struct tcp_sock *tp, const struct oracle_step *step);
	/* Private data of tcp_dctcp. */
	void (*get_private)(const struct tcp_sock *tp, struct oracle_private *data);
	void (*set_private)(struct tcp_sock *tp, const struct oracle_private *data);
};

const struct oracle_core *oracle_core(void);

/* What was registered through the C functions that Rust calls. */
const struct tcp_congestion_ops *oracle_registered(void);

struct tcp_sock *oracle_new(void);
void oracle_delete(struct tcp_sock *tp);
/* Makes @to like @from, but for the operations and their data. */
void oracle_copy(struct tcp_sock *to, const struct tcp_sock *from);
/* Whether the numbers of a copy are the original's, also where they look like an address in it. */
bool oracle_copies_numbers(void);
/* The first number in which the two differ, from @from on; -1 when there is none. */
int oracle_differ(struct tcp_sock *a, struct tcp_sock *b, int from);
const char *oracle_name(int number);
uint64_t oracle_value(struct tcp_sock *tp, int number);

/* Sets the clock back; the low 32 bits of jiffies wrap after @before_wrap of them. */
void oracle_reset(uint32_t before_wrap);
void oracle_set_sysctl(uint32_t which, uint32_t value);
/* Moves the clock: ORACLE_TIME, and ORACLE_TIMER for the timer of @tp. */
void oracle_pass(const struct tcp_sock *tp, const struct oracle_step *step);

uint32_t oracle_cwnd(const struct tcp_sock *tp);
uint32_t oracle_rto(const struct tcp_sock *tp);
/* The least window since this was last asked. */
uint32_t oracle_low(struct tcp_sock *tp);
/* Packets that left below the floor since this was last asked. */
uint32_t oracle_below(struct tcp_sock *tp);
void oracle_set_floor(struct tcp_sock *tp, uint32_t floor);
/* The reduction of the window that is on has not been undone. */
bool oracle_may_undo(const struct tcp_sock *tp);
uint8_t oracle_state(const struct tcp_sock *tp);
bool oracle_falls_back(const struct tcp_sock *tp, const struct tcp_congestion_ops *ops);

#endif
