/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What bindgen reads: the kernel's TCP, ftrace and namespace headers, and the helpers that stand
 * in for their macros and inline functions (tcp_helpers.c, hook_helpers.c).
 */
#include <linux/ftrace.h>
#include <linux/inet_diag.h>
#include <linux/moduleparam.h>
#include <linux/seq_file.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#include "helpers.h"

/* Macros that bindgen cannot evaluate. */
const u32 LOWTAIL_CONG_NEEDS_ECN = TCP_CONG_NEEDS_ECN;
const u8 LOWTAIL_ECN_DEMAND_CWR = TCP_ECN_DEMAND_CWR;
const u8 LOWTAIL_ACK_TIMER = ICSK_ACK_TIMER;
const u8 LOWTAIL_ACK_NOW = ICSK_ACK_NOW;
const u32 LOWTAIL_FTRACE_FLAGS = FTRACE_OPS_FL_SAVE_ARGS;
const u8 LOWTAIL_TCP_CLOSE = TCP_CLOSE;
const u8 LOWTAIL_TCP_LISTEN = TCP_LISTEN;
const u8 LOWTAIL_TCP_SYN_RECV = TCP_SYN_RECV;
const u32 LOWTAIL_MSG_SPLICE_PAGES = MSG_SPLICE_PAGES;
const u32 LOWTAIL_NAGLE_OFF = TCP_NAGLE_OFF;
