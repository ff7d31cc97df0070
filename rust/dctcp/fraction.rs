// SPDX-License-Identifier: GPL-2.0

//! Windows of less than 2 packets: what is left after losses while the floor holds cwnd at 2.
//!
//! RFC 8257 §3.5 asks for half of the window after a loss, which whole packets cannot show below 2,
//! and N flows at the floor keep 2·N packets in the bottleneck. Where that is more than the buffer
//! holds, packets are lost for ever, and lone ones wait for the timer. Here the wish is kept to
//! 1/65536 packet, and the sender follows it by pacing: one packet every RTT/w, while cwnd stays at
//! 2 and a lost packet has a second one behind it.
//!
//! ```text
//!                     a loss while α > 1/4, at the floor: w < 2
//!   cwnd, ACK clock  ────────────────────────────────────►  w, paced at mss·w/RTT
//!   (as stock)       ◄────────────────────────────────────  (cwnd stays at the floor)
//!                     w ≥ 2, or α ≤ 1/4
//! ```
//!
//! Marks alone do not lead here, though §3.3 wants w·(1 − α/2) at each. Flows that have two packets
//! each and no loss take turns in the queue, and no order serves them better; those that got fewer
//! by the chance of a mark would wait while the others go on (docs/pacing.md has the figures).

use super::alpha::MAX_ALPHA;

/// One packet.
const ONE: u32 = 1 << 16;

/// The floor in this unit: from here on cwnd says it all.
const FLOOR: u32 = super::floor::MIN_CWND * ONE;

/// The least window: half a packet, so that nothing waits longer than 2 RTTs for its turn.
const MIN: u32 = ONE / 2;

/// What each RTT adds: 1/128 packet. Each way back to the floor ends with a loss where the buffer
/// is too small for it, so it takes long; and a flow that lost by chance is there after some time.
const GAIN: u32 = ONE / 128;

/// Microseconds in a second.
const USEC_PER_SEC: u64 = 1_000_000;

/// Marks on alpha (of 1024) of the packets sustain 2 packets: 2·(1 − α)/α, where halving by the marked
/// packets and a packet more for each of the others balance, is 2 at α = ½; half of that is taken,
/// since the ends of answers are not marked. Who loses packets nevertheless does not lose them to a
/// queue of flows at the floor.
fn sustains_floor(alpha: u32) -> bool {
    alpha <= MAX_ALPHA / 4
}

/// The window, in packets, with which a flow begins again after nothing was in flight, on a path that
/// marks alpha (of 1024) of its packets: where most are marked, not more than what the last mark
/// left, which is `ssthresh`.
///
/// What a flow gained after that it gained at the end of what it had to send, while the others had
/// ended. N flows that begin with it at once lose packets to a buffer that has room for what marks
/// had left them.
pub(crate) fn begins_with(cwnd: u32, ssthresh: u32, alpha: u32) -> u32 {
    if sustains_floor(alpha) {
        cwnd
    } else {
        cwnd.min(ssthresh.max(super::floor::MIN_CWND))
    }
}

/// The window w that is wanted, if it is below 2 packets. Zero stands for "2 or more", so that a
/// zeroed connection is an ordinary one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fraction(u32);

impl Fraction {
    /// 2 packets or more: the window is cwnd.
    pub(crate) const NONE: Self = Self(0);

    /// From [`Fraction::to_raw`].
    pub(crate) const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// For keeping, in 1/65536 packets; 0 for [`Fraction::NONE`].
    pub(crate) const fn to_raw(self) -> u32 {
        self.0
    }

    /// Less than 2 packets are wanted.
    pub(crate) const fn is_below_floor(self) -> bool {
        self.0 != 0
    }

    /// What is wanted now, in 1/65536 packets, where whole packets say `cwnd`.
    fn wanted(self, cwnd: u32) -> u64 {
        if self.is_below_floor() {
            self.0.into()
        } else {
            u64::from(cwnd).wrapping_mul(ONE.into())
        }
    }

    /// `wanted`, in 1/65536 packets, not below the least; none where it is 2 packets or more.
    fn of(wanted: u64) -> Self {
        if wanted >= FLOOR.into() {
            Self::NONE
        } else {
            Self((wanted as u32).max(MIN))
        }
    }

    /// After a loss: w/2 (RFC 8257 §3.5).
    pub(crate) fn lost(self, cwnd: u32, alpha: u32) -> Self {
        if sustains_floor(alpha) {
            return Self::NONE;
        }
        Self::of(self.wanted(cwnd) / 2)
    }

    /// After an RTO: as after a loss; and where that is below the floor, not more than RFC 5681's
    /// loss window of one packet.
    pub(crate) fn timed_out(self, cwnd: u32, alpha: u32) -> Self {
        Self(self.lost(cwnd, alpha).0.min(ONE))
    }

    /// How long the first packet waits after nothing was in flight, in µs: some part of RTT/w, by
    /// `chance` of 2³². `None` from one packet an RTT on.
    ///
    /// N flows that are asked at once would answer at once, N packets whatever they want; a gap
    /// between the packets of a flow does nothing for that, one between the flows does. It holds after
    /// idle time too: a wait of 2 RTTs costs little, and an RTO is what the others had to wait for.
    pub(crate) fn spread(self, rtt_us: u32, chance: u32) -> Option<u32> {
        if !self.is_below_floor() || self.0 >= ONE {
            return None;
        }
        // At most 2 RTTs: 2³² · 2, times 2³² wraps only for an RTT of an hour; so cut first.
        let gap = u64::from(rtt_us)
            .wrapping_mul(ONE.into())
            .checked_div(self.0.into())
            .unwrap_or(0)
            .min(u32::MAX.into());
        Some((gap.wrapping_mul(chance.into()) >> 32) as u32)
    }

    /// After an ACK for `packets`, marked or not: [`GAIN`] an RTT, which is packets·GAIN/w. Nothing
    /// is left of it where marks sustain the floor.
    ///
    /// Marks do not hold it: where all are marked, a loss is the only sign that tells a queue that
    /// grows from one that stands; and what raises all windows by the same, whatever they are,
    /// makes them alike.
    pub(crate) fn acked(self, packets: u32, alpha: u32) -> Self {
        if !self.is_below_floor() || packets == 0 {
            return self;
        }
        if sustains_floor(alpha) {
            return Self::NONE;
        }
        // No overflow: below 2⁴⁸, and times 2⁹ below 2⁶⁴.
        let more = u64::from(packets)
            .wrapping_mul(ONE.into())
            .wrapping_mul(GAIN.into())
            .checked_div(self.0.into())
            .unwrap_or(0);
        Self::of(u64::from(self.0).saturating_add(more))
    }

    /// The pacing rate, in bytes a second, for packets of `mss` bytes and an RTT of `rtt_us` µs:
    /// mss·w/RTT and no headroom, since a burst is what is to be avoided. `None` at 2 packets or
    /// more.
    pub(crate) fn rate(self, mss: u32, rtt_us: u32) -> Option<u64> {
        if !self.is_below_floor() {
            return None;
        }
        // mss < 2¹⁶, w < 2¹⁷ and 2²⁰: no overflow. At least 1, since 0 is "no rate" to core TCP.
        let rate = u64::from(mss)
            .wrapping_mul(self.0.into())
            .wrapping_mul(USEC_PER_SEC)
            / u64::from(ONE)
            / u64::from(rtt_us.max(1));
        Some(rate.max(1))
    }
}

/// The RTT that the pacing stands on: `known` µs so far (0: nothing yet), the newest `sample`, and
/// `lossy`, what it was at the last loss (0: none was measured).
///
/// Up to the RTT of a queue that lost packets it is the sample: an incast's queue is empty at the end
/// of a round and full a moment after the next began. Beyond that it is the sample if that is less,
/// and goes up by an eighth an ACK. A receiver holds the ACK of a packet that comes alone for up to
/// 40 ms, and paced packets come alone; a smoothed RTT would take the delay for the path's, the pacing
/// would get slower by it and the next delay longer.
pub(crate) fn follow_rtt(known: u32, sample: u32, lossy: u32) -> u32 {
    if known == 0 {
        return sample;
    }
    let most = known.saturating_add(known / 8).saturating_add(1);
    sample.min(most.max(lossy))
}
