// SPDX-License-Identifier: GPL-2.0

//! Alpha, the estimate of the fraction of marked packets, and the windows that follow from it.
//!
//! RFC 8257 §3.3, and `dctcp_update_alpha()`, `dctcp_ssthresh()` and `dctcp_react_to_loss()` of
//! `net/ipv4/tcp_dctcp.c`, to the bit. Alpha is a fixed-point fraction: [`MAX_ALPHA`] stands for 1.

/// Alpha's value for "every packet was marked" (`DCTCP_MAX_ALPHA`).
pub(crate) const MAX_ALPHA: u32 = 1 << MAX_ALPHA_SHIFT;

/// log₂ of [`MAX_ALPHA`].
pub(super) const MAX_ALPHA_SHIFT: u32 = 10;

/// Largest `shift_g` for which the shifts below are defined (CVE-2024-37356).
pub(crate) const MAX_SHIFT_G: u32 = 10;

/// Scale of the marked fraction that PLB is told, in bits (`TCP_PLB_SCALE`).
const PLB_SCALE: u32 = 8;

/// Smallest ssthresh, in packets: RFC 5681 equation (4), and RFC 8257 §3.5.
const MIN_SSTHRESH: u32 = 2;

/// What an observation window delivered, in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Packets delivered, marked or not.
    pub(crate) delivered: u32,
    /// Those of them that carried CE, by the receiver's account. May exceed `delivered` by a
    /// packet or two, since the two counters are advanced at different moments of an ACK.
    pub(crate) delivered_ce: u32,
}

impl Window {
    /// The fraction of marked packets in this window, scaled by 2⁸, which is what
    /// `tcp_plb_update_state()` expects; `None` when nothing was delivered, since PLB is not to
    /// be consulted then.
    pub(crate) fn ce_ratio(self) -> Option<u32> {
        // C shifts a u32 and lets the top bits fall off; so do we (16 M packets a window).
        (self.delivered_ce << PLB_SCALE).checked_div(self.delivered)
    }

    /// Alpha after this window: α ← (1 − g)·α + g·F with g = 2^-`shift_g`.
    ///
    /// `shift_g` above [`MAX_SHIFT_G`] counts as [`MAX_SHIFT_G`]. Once marks stop, alpha decays
    /// all the way to 0: where α·g rounds to 0, α itself is subtracted (`min_not_zero()`).
    pub(crate) fn next_alpha(self, alpha: u32, shift_g: u32) -> u32 {
        let shift_g = if shift_g > MAX_SHIFT_G {
            MAX_SHIFT_G
        } else {
            shift_g
        };
        let decayed = alpha.saturating_sub(match alpha >> shift_g {
            0 => alpha,
            step => step,
        });
        if self.delivered_ce == 0 {
            return decayed;
        }

        let gain = (self.delivered_ce << (MAX_ALPHA_SHIFT - shift_g)) / self.delivered.max(1);
        decayed.wrapping_add(gain).min(MAX_ALPHA)
    }
}

/// Slow-start threshold when the network marked: cwnd·(1 − α/2), at least 2 packets.
///
/// RFC 8257 §3.3 step 9; the least value is RFC 5681's.
pub(crate) fn ssthresh_marked(cwnd: u32, alpha: u32) -> u32 {
    cwnd.wrapping_sub(cwnd.wrapping_mul(alpha) >> (MAX_ALPHA_SHIFT + 1))
        .max(MIN_SSTHRESH)
}

/// Slow-start threshold when a packet was lost: half of cwnd, at least 2 packets.
///
/// RFC 8257 §3.5: loss is answered as a conventional TCP answers it, whatever alpha says.
pub(crate) fn ssthresh_lost(cwnd: u32) -> u32 {
    (cwnd >> 1).max(MIN_SSTHRESH)
}
