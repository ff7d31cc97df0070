// SPDX-License-Identifier: GPL-2.0

//! TCP's sysctls of a socket's network namespace (`struct netns_ipv4`), read in line.
//!
//! `struct net` is more than bindgen can express, so that a member's place and size are gcc's
//! (`layout.c`). A call into C would cost more than the rest of what is done with the number.

use super::{
    bindings,
    cong::CongestionControl,
    layout::gcc,
    sock::Sock, //
};

/// Readers of one member of `struct netns_ipv4`.
macro_rules! sysctls {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $offset:ident, $size:ident;)+) => {
        $(
            const _: () = assert!(size_of::<$type>() == gcc::$size, stringify!($name));
        )+

        impl<A: CongestionControl, C> Sock<'_, A, C> {
            $(
                $(#[$doc])*
                #[inline]
                pub(crate) fn $name(&self) -> $type {
                    // SAFETY: By the type invariant the socket is valid, so it has a namespace
                    // (`sock_net()`). The member is where gcc put it, and of this type's size.
                    // Volatile, since a write to the sysctl may come at any time.
                    unsafe {
                        let sk = self.as_ptr();
                        let net: *const bindings::net = (*sk).__sk_common.skc_net.net;
                        net.byte_add(gcc::$offset).cast::<$type>().read_volatile()
                    }
                }
            )+
        }
    };
}

sysctls! {
    /// `net.ipv4.tcp_min_tso_segs`, in segments.
    min_tso_segs: u8 = NET_MIN_TSO_SEGS, SIZEOF_NET_MIN_TSO_SEGS;
    /// `net.ipv4.tcp_slow_start_after_idle`: 0 is off.
    slow_start_after_idle: u8 = NET_SLOW_START_AFTER_IDLE, SIZEOF_NET_SLOW_START_AFTER_IDLE;
    /// `net.ipv4.tcp_plb_enabled`: 0 is off.
    plb_enabled: u8 = NET_PLB_ENABLED, SIZEOF_NET_PLB_ENABLED;
    /// `net.ipv4.tcp_reordering`, in packets.
    sysctl_reordering: u32 = NET_REORDERING, SIZEOF_NET_REORDERING;
    /// `net.ipv4.tcp_pacing_ss_ratio`, in percent.
    pacing_ss_ratio: u32 = NET_PACING_SS_RATIO, SIZEOF_NET_PACING_SS_RATIO;
    /// `net.ipv4.tcp_pacing_ca_ratio`, in percent.
    pacing_ca_ratio: u32 = NET_PACING_CA_RATIO, SIZEOF_NET_PACING_CA_RATIO;
}
