// SPDX-License-Identifier: GPL-2.0

//! The layouts that bindgen (clang) computed are those that gcc compiled the kernel with.
//!
//! A difference stops the build here, instead of reading another member at run time. gcc's numbers
//! come from `layout.c`. Bit-fields are read in C (`helpers.h`), never through bindgen.

use core::mem::{
    offset_of,
    size_of, //
};

use super::bindings::{
    __arch_ftrace_regs,
    ctl_table,
    ftrace_ops,
    inet_connection_sock,
    kernel_param,
    pernet_operations,
    rate_sample,
    sock,
    tcp_congestion_ops,
    tcp_plb_state,
    tcp_sock, //
};

/// gcc's numbers.
#[allow(dead_code)]
pub(super) mod gcc {
    include!(concat!(
        env!("LOWTAIL_OBJ"),
        "/rust/net/layout_generated.rs"
    ));
}

/// Asserts, while compiling, that bindgen and gcc agree.
macro_rules! agree {
    ($($bindgen:expr => $gcc:ident),+ $(,)?) => {
        $(const _: () = assert!($bindgen == gcc::$gcc, stringify!($gcc));)+
    };
}

agree! {
    size_of::<tcp_sock>() => SIZEOF_TCP_SOCK,
    size_of::<sock>() => SIZEOF_SOCK,
    size_of::<inet_connection_sock>() => SIZEOF_ICSK,
    size_of::<tcp_congestion_ops>() => SIZEOF_CA_OPS,
    size_of::<rate_sample>() => SIZEOF_RATE_SAMPLE,
    size_of::<tcp_plb_state>() => SIZEOF_PLB,
    size_of::<ftrace_ops>() => SIZEOF_FTRACE_OPS,
    size_of::<__arch_ftrace_regs>() => SIZEOF_FTRACE_REGS,
    size_of::<pernet_operations>() => SIZEOF_PERNET_OPS,
    size_of::<ctl_table>() => SIZEOF_CTL_TABLE,
    size_of::<kernel_param>() => SIZEOF_KERNEL_PARAM,
    offset_of!(sock, __sk_common.skc_net) => SK_NET,
    offset_of!(sock, __sk_common.skc_state) => SK_STATE,
    offset_of!(sock, sk_pacing_rate) => SK_PACING_RATE,
    offset_of!(sock, sk_max_pacing_rate) => SK_MAX_PACING_RATE,
    offset_of!(inet_connection_sock, icsk_ca_priv) => CSK_CA_PRIV,
    offset_of!(inet_connection_sock, icsk_rto) => CSK_RTO,
    offset_of!(inet_connection_sock, icsk_ack) => CSK_ACK,
    offset_of!(inet_connection_sock, icsk_ca_ops) => CSK_CA_OPS,
    offset_of!(tcp_sock, delivered) => TP_DELIVERED,
    offset_of!(tcp_sock, delivered_ce) => TP_DELIVERED_CE,
    offset_of!(tcp_sock, ecn_flags) => TP_ECN_FLAGS,
    offset_of!(tcp_sock, lsndtime) => TP_LSNDTIME,
    offset_of!(tcp_sock, lost) => TP_LOST,
    offset_of!(tcp_sock, mss_cache) => TP_MSS_CACHE,
    offset_of!(tcp_sock, packets_out) => TP_PACKETS_OUT,
    offset_of!(tcp_sock, prior_cwnd) => TP_PRIOR_CWND,
    offset_of!(tcp_sock, prr_delivered) => TP_PRR_DELIVERED,
    offset_of!(tcp_sock, prr_out) => TP_PRR_OUT,
    offset_of!(tcp_sock, rack.rtt_us) => TP_RACK_RTT_US,
    offset_of!(tcp_sock, rcv_nxt) => TP_RCV_NXT,
    offset_of!(tcp_sock, reordering) => TP_REORDERING,
    offset_of!(tcp_sock, snd_cwnd) => TP_SND_CWND,
    offset_of!(tcp_sock, snd_cwnd_stamp) => TP_SND_CWND_STAMP,
    offset_of!(tcp_sock, snd_cwnd_used) => TP_SND_CWND_USED,
    offset_of!(tcp_sock, snd_nxt) => TP_SND_NXT,
    offset_of!(tcp_sock, snd_ssthresh) => TP_SND_SSTHRESH,
    offset_of!(tcp_sock, snd_una) => TP_SND_UNA,
    offset_of!(tcp_sock, snd_wnd) => TP_SND_WND,
    offset_of!(tcp_sock, srtt_us) => TP_SRTT_US,
    offset_of!(tcp_sock, undo_marker) => TP_UNDO_MARKER,
    offset_of!(tcp_sock, write_seq) => TP_WRITE_SEQ,
}
