/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What bindgen reads for the test-only modules: the product's headers, netfilter's, and the helpers
 * of this folder.
 */
#include "../../../rust/net/bindings_helper.h"

#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/skbuff.h>

#include "fault_helpers.h"

/* Macros that bindgen cannot evaluate. */
const u8 LOWTAIL_NFPROTO_INET = NFPROTO_INET;
const u32 LOWTAIL_NF_LOCAL_OUT = NF_INET_LOCAL_OUT;
const u32 LOWTAIL_NF_ACCEPT = NF_ACCEPT;
const u32 LOWTAIL_NF_STOLEN = NF_STOLEN;
/* After whatever a firewall does, so that what is lost here was really sent. */
const s32 LOWTAIL_NF_LAST = NF_IP_PRI_LAST;
