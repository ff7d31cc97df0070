// SPDX-License-Identifier: GPL-2.0

//! Proportional Rate Reduction as it was in June 2018 (`tcp_cwnd_reduction()` of Linux 4.17).
//!
//! What differs from today's (`rust/dctcp/prr.rs`): below ssthresh a packet more than was delivered
//! leaves only when the ACK covers a retransmission, so that the sender of a window of one or two
//! packets, told of CE, is left with a window of one.

use crate::dctcp::prr::{
    Reduction,
    Step, //
};

/// What an ACK says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    /// Packets newly acknowledged or selectively acknowledged.
    pub(crate) delivered: u32,
    /// A retransmission was acknowledged (`FLAG_RETRANS_DATA_ACKED`), and none was found to be lost
    /// again (`FLAG_LOST_RETRANS`).
    pub(crate) retransmission_arrived: bool,
}

/// The next step of `reduction`, or `None` when the ACK delivered nothing or no reduction is on.
///
/// C's arithmetic is on `int` modulo 2³², and so is this; a negative window comes out as 0.
pub(crate) fn step(reduction: Reduction, ack: Ack) -> Option<Step> {
    if int(ack.delivered) <= 0 {
        return None;
    }

    let delivered = reduction.delivered.wrapping_add(ack.delivered);
    let room = int(reduction.ssthresh.wrapping_sub(reduction.in_flight));
    let send = if room < 0 {
        let prior_cwnd = u64::from(reduction.prior_cwnd);
        let share = u64::from(reduction.ssthresh)
            .wrapping_mul(u64::from(delivered))
            .wrapping_add(prior_cwnd)
            .wrapping_sub(1)
            .checked_div(prior_cwnd)?;
        int((share as u32).wrapping_sub(reduction.out))
    } else if ack.retransmission_arrived {
        int(delivered.wrapping_sub(reduction.out))
            .max(int(ack.delivered))
            .wrapping_add(1)
            .min(room)
    } else {
        int(ack.delivered).min(room)
    };
    // A fast retransmit on entering Recovery leaves whatever the sums say.
    let send = send.max(i32::from(reduction.out == 0));

    (reduction.prior_cwnd != 0).then_some(Step {
        delivered,
        cwnd: int(reduction.in_flight)
            .wrapping_add(send)
            .max(0)
            .unsigned_abs(),
    })
}

/// The same 32 bits as C's `int`.
const fn int(bits: u32) -> i32 {
    bits as i32
}
