// SPDX-License-Identifier: GPL-2.0
/*
 * C for what Rust cannot call in tcp_dctcp_floor's counters and tracepoints. The former are those of
 * the hook; an object of kbuild's belongs to one module.
 */
#include "hook_helpers.c"

#define CREATE_TRACE_POINTS
#include "trace_floor.h"

void lowtail_trace_floor_raised(const struct sock *sk, u8 ca_state, u32 prior_cwnd, u32 cwnd,
				u32 alpha)
{
	trace_dctcp_floor_raised(sk, ca_state, prior_cwnd, cwnd, alpha);
}

void lowtail_trace_floor_paced(const struct sock *sk, u32 window, u32 rtt_us, u32 alpha)
{
	trace_dctcp_floor_paced(sk, window, rtt_us, alpha);
}
