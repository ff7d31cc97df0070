// SPDX-License-Identifier: GPL-2.0

//! The pacing rate that follows from a window.
//!
//! `tcp_update_pacing_rate()` of `net/ipv4/tcp_input.c`, to the bit. Core TCP stops doing this for
//! a congestion control that has `cong_control`; sch_fq and TSO autosizing still need the rate.

/// Microseconds in a second.
const USEC_PER_SEC: u64 = 1_000_000;

/// What the rate follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Sender's maximum segment size, in bytes (`mss_cache`).
    pub(crate) mss: u32,
    /// Congestion window, in packets.
    pub(crate) cwnd: u32,
    /// Slow-start threshold, in packets.
    pub(crate) ssthresh: u32,
    /// Packets sent and not cumulatively acknowledged.
    pub(crate) packets_out: u32,
    /// Smoothed round-trip time, in eighths of a microsecond; 0 when there is none yet.
    pub(crate) srtt_us_8: u32,
    /// `net.ipv4.tcp_pacing_ss_ratio`, in percent.
    pub(crate) ss_ratio: u32,
    /// `net.ipv4.tcp_pacing_ca_ratio`, in percent.
    pub(crate) ca_ratio: u32,
    /// `SO_MAX_PACING_RATE`, in bytes a second.
    pub(crate) max_rate: u64,
}

impl Pace {
    /// The pacing rate, in bytes a second: 200 % of mss·cwnd/srtt well below ssthresh, 120 %
    /// elsewhere (by the two sysctls), at most [`Pace::max_rate`].
    pub(crate) fn rate(self) -> u64 {
        let ratio = if self.cwnd < self.ssthresh / 2 {
            self.ss_ratio
        } else {
            self.ca_ratio
        };
        // mss < 2¹⁶, ratio ≤ 1000, window < 2³²: wraps where C's u64 would, never panics.
        let rate = u64::from(self.mss)
            .wrapping_mul((USEC_PER_SEC / 100) << 3)
            .wrapping_mul(u64::from(ratio))
            .wrapping_mul(u64::from(self.cwnd.max(self.packets_out)));

        rate.checked_div(u64::from(self.srtt_us_8))
            .unwrap_or(rate)
            .min(self.max_rate)
    }
}
