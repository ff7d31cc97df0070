// SPDX-License-Identifier: GPL-2.0

//! Proportional Rate Reduction: the window on the way down to ssthresh, in CWR and Recovery.
//!
//! RFC 6937 with the conservative bound of RFC 9937 (slow-start bound only while SND.UNA advances
//! without further loss), and `tcp_cwnd_reduction()` of `net/ipv4/tcp_input.c`, to the bit. Core
//! TCP stops doing this for a congestion control that has `cong_control`.

/// The episode of reduction as an ACK finds it, in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reduction {
    /// The window that the episode ends at.
    pub(crate) ssthresh: u32,
    /// The window that the episode began with; 0 means that there is none.
    pub(crate) prior_cwnd: u32,
    /// Delivered since the episode began.
    pub(crate) delivered: u32,
    /// Sent since the episode began.
    pub(crate) out: u32,
    /// In the network now (`tcp_packets_in_flight()`).
    pub(crate) in_flight: u32,
}

/// What an ACK says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    /// Packets newly acknowledged or selectively acknowledged.
    pub(crate) delivered: u32,
    /// Packets newly marked lost.
    pub(crate) lost: u32,
    /// SND.UNA advanced.
    pub(crate) advanced: bool,
}

/// What follows from an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// [`Reduction::delivered`] from now on.
    pub(crate) delivered: u32,
    /// The congestion window from now on, before any floor; in packets.
    pub(crate) cwnd: u32,
}

impl Reduction {
    /// The next step, or `None` when this ACK delivered nothing or no episode is on: then the
    /// window stays as it is.
    ///
    /// C's arithmetic is on `int` modulo 2³², and so is this; a window that would come out
    /// negative (core TCP warns about it) comes out as 0 and is the floor's to mend.
    pub(crate) fn step(self, ack: Ack) -> Option<Step> {
        // As C's `newly_acked_sacked <= 0` on an int.
        if int(ack.delivered) <= 0 || self.prior_cwnd == 0 {
            return None;
        }

        let delivered = self.delivered.wrapping_add(ack.delivered);
        let room = int(self.ssthresh.wrapping_sub(self.in_flight));
        let send = if room < 0 {
            // Proportional: as many packets leave as keep sent/delivered at ssthresh/prior_cwnd.
            let share = u64::from(self.ssthresh)
                .wrapping_mul(u64::from(delivered))
                .wrapping_add(u64::from(self.prior_cwnd) - 1)
                / u64::from(self.prior_cwnd);
            int((share as u32).wrapping_sub(self.out))
        } else {
            // Bounded: never burst back to ssthresh after more was lost than asked for.
            let owed = int(delivered.wrapping_sub(self.out));
            let send = owed.max(int(ack.delivered));
            let slow_start = i32::from(ack.advanced && ack.lost == 0);
            send.wrapping_add(slow_start).min(room)
        };
        // A fast retransmit on entering Recovery leaves whatever the sums say.
        let send = send.max(i32::from(self.out == 0));

        let cwnd = int(self.in_flight).wrapping_add(send).max(0);
        Some(Step {
            delivered,
            cwnd: cwnd.unsigned_abs(),
        })
    }
}

/// The same 32 bits as C's `int`.
const fn int(bits: u32) -> i32 {
    bits as i32
}
