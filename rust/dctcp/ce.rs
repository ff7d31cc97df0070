// SPDX-License-Identifier: GPL-2.0

//! The receiver's CE state machine: how marks travel back to the sender under delayed ACKs.
//!
//! RFC 8257 §3.2, figure 1, and `dctcp_ece_ack_update()` of `net/ipv4/tcp_dctcp.h`.
//!
//! ```text
//!              CE arrives: ACK the pending data without ECE, then ACK at once
//!        ┌───────────────────────────────────────────────────────────────────┐
//!        │                                                                   ▼
//!   CE = 0, ACKs carry no ECE                              CE = 1, ACKs carry ECE
//!        ▲                                                                   │
//!        └───────────────────────────────────────────────────────────────────┘
//!              no CE arrives: ACK the pending data with ECE, then ACK at once
//! ```

/// What the receiver has to do when a data segment arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reaction {
    /// Send an ACK for everything up to the segment before this one, with the *old* CE state,
    /// because a delayed ACK was pending for it.
    pub(crate) ack_pending_with_old_state: bool,
    /// ACK this segment without delay: a change must reach the sender at once (otherwise its last
    /// data is only acknowledged after the sender's RTO, linux b0c05d0e99d9).
    pub(crate) ack_now: bool,
    /// From now on ACKs carry ECE.
    pub(crate) echo: bool,
}

/// The reaction to a segment that carried CE (`marked`) or not, when the segment before it did
/// (`was_marked`) or not, and a delayed ACK is due for that one (`ack_delayed`).
pub(crate) fn on_segment(was_marked: bool, marked: bool, ack_delayed: bool) -> Reaction {
    let changed = was_marked != marked;

    Reaction {
        ack_pending_with_old_state: changed && ack_delayed,
        ack_now: changed,
        echo: marked,
    }
}
