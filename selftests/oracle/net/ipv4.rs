// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `rust/net/ipv4.rs`: the oracle's one namespace.

use super::{bindings, cong::CongestionControl, sock::Sock};

macro_rules! sysctls {
    ($($name:ident: $type:ty = $member:ident;)+) => {
        impl<A: CongestionControl, C> Sock<'_, A, C> {
            $(
                pub(crate) fn $name(&self) -> $type {
                    // SAFETY: A number that C writes between steps only.
                    unsafe { bindings::oracle_net.ipv4.$member as $type }
                }
            )+
        }
    };
}

sysctls! {
    min_tso_segs: u8 = sysctl_tcp_min_tso_segs;
    slow_start_after_idle: u8 = sysctl_tcp_slow_start_after_idle;
    plb_enabled: u8 = sysctl_tcp_plb_enabled;
    sysctl_reordering: u32 = sysctl_tcp_reordering;
    pacing_ss_ratio: u32 = sysctl_tcp_pacing_ss_ratio;
    pacing_ca_ratio: u32 = sysctl_tcp_pacing_ca_ratio;
}
