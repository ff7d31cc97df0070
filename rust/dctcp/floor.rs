// SPDX-License-Identifier: GPL-2.0

//! The floor: the congestion window is never below 2 packets.
//!
//! With one packet out, a lost packet costs `2·SRTT + rto_min` (200 ms) before the loss probe is
//! sent, and a delayed ACK (40 ms) where the receiver still delays. With two packets out the probe
//! comes after `2·SRTT + 2 ms` (`tcp_schedule_loss_probe()`), and two segments are acknowledged
//! at once (RFC 1122 §4.2.3.2). That is all the difference between a p99.9 of a few milliseconds
//! and one of 200.

/// The least congestion window, in packets.
pub(crate) const MIN_CWND: u32 = 2;

/// Whether the floor holds at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Floor {
    /// cwnd ≥ [`MIN_CWND`].
    Held,
    /// After an RTO with `rto_floor=N`: RFC 5681's loss window of one packet (equation (4) and
    /// §3.1) stands until the window grows out of it.
    Waived,
}

impl Floor {
    /// The floor in CA state Loss (`in_loss`) or another one, under the parameter `rto_floor`.
    pub(crate) fn for_state(in_loss: bool, rto_floor: bool) -> Self {
        if in_loss && !rto_floor {
            Floor::Waived
        } else {
            Floor::Held
        }
    }

    /// `cwnd` packets, raised to the floor where it holds.
    pub(crate) fn apply(self, cwnd: u32) -> u32 {
        match self {
            Floor::Held => cwnd.max(MIN_CWND),
            Floor::Waived => cwnd,
        }
    }
}
