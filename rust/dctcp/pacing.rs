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
    /// `SO_MAX_PACING_RATE`, in bytes a second.
    pub(crate) max_rate: u64,
}

impl Pace {
    /// The window is well below ssthresh, so that it will be twice as large an RTT from now.
    pub(crate) fn in_slow_start(self) -> bool {
        self.cwnd < self.ssthresh / 2
    }

    /// The pacing rate, in bytes a second: `ratio` percent of mss·cwnd/srtt, at most
    /// [`Pace::max_rate`]. The ratio is a sysctl's, one [in slow start](Self::in_slow_start) and
    /// another elsewhere (200 and 120 % by default).
    pub(crate) fn rate(self, ratio: u32) -> u64 {
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
