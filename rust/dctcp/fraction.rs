// SPDX-License-Identifier: GPL-2.0

//! Windows of less than 2 packets: what DCTCP wants while the floor holds cwnd at 2.
//!
//! RFC 8257 §3.3 asks for cwnd·(1 − α/2), and §3.5 for cwnd/2, which is a fraction of a packet more
//! or less once cwnd is small. Whole packets cannot show it, and ssthresh ends at 2
//! ([`super::alpha`]), so N flows keep 2·N packets in the bottleneck however much is marked. Here
//! the wish is kept to 1/65536 packet, and the sender follows it by pacing: one packet every
//! RTT/w, while cwnd stays at 2 and a lost packet has a second one behind it.
//!
//! ```text
//!                        a mark, a loss: w < 2 is wanted
//!   cwnd, ACK clock  ────────────────────────────────────►  w, paced at mss·w/RTT
//!   (as stock)       ◄────────────────────────────────────  (cwnd stays at the floor)
//!                        ACKs without a mark: w ≥ 2
//! ```

use super::alpha::{
    MAX_ALPHA,
    MAX_ALPHA_SHIFT, //
};

/// One packet.
const ONE: u32 = 1 << 16;

/// The floor in this unit: from here on cwnd says it all.
const FLOOR: u32 = super::floor::MIN_CWND * ONE;

/// The least window: 1/16 packet, a packet every 16 RTTs.
///
/// A flow learns of the queue only by the packets that it sends, so it is deaf for 1/w RTTs; and a
/// lost packet waits as long for the one that would show the loss. With K packets allowed in the
/// queue 1/16 is enough for 16·K flows.
const MIN: u32 = ONE / 16;

/// Microseconds in a second.
const USEC_PER_SEC: u64 = 1_000_000;

/// The window that marks on alpha (of 1024) of the packets sustain, in 1/65536 packets:
/// 2·(1 − α)/α. There halving by the marked packets and a packet more for each of the others
/// balance. 2 packets at α = ½, none at α = 1.
///
/// Where each packet is judged alone, four marks in a row are chance on a path that marks two of
/// three; and a flow that they took to 1/16 packet would need hundreds of RTTs to find that out.
fn sustains(alpha: u32) -> u64 {
    u64::from(FLOOR)
        .wrapping_mul(MAX_ALPHA.saturating_sub(alpha).into())
        .checked_div(alpha.into())
        .unwrap_or(u64::MAX)
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

    /// After a mark: w·(1 − α/2), with alpha of 1024 (RFC 8257 §3.3 step 9), whenever core TCP
    /// asks for ssthresh; that is once a window of data, which is one packet when w < 1. Not below
    /// what alpha [`sustains`].
    pub(crate) fn marked(self, cwnd: u32, alpha: u32) -> Self {
        let wanted = self.wanted(cwnd);
        let alpha = alpha.min(MAX_ALPHA);
        // No overflow: 2³² packets are 2⁴⁸, alpha is at most 2¹⁰, and half of it goes at most.
        let less = wanted.wrapping_mul(alpha.into()) >> (MAX_ALPHA_SHIFT + 1);
        Self::of(wanted.saturating_sub(less).max(wanted.min(sustains(alpha))))
    }

    /// After a loss: w/2 (RFC 8257 §3.5).
    pub(crate) fn lost(self, cwnd: u32) -> Self {
        Self::of(self.wanted(cwnd) / 2)
    }

    /// After an RTO: as after a loss, and not more than RFC 5681's loss window of one packet.
    pub(crate) fn timed_out(self, cwnd: u32) -> Self {
        Self::of((self.wanted(cwnd) / 2).min(ONE.into()))
    }

    /// After `idle` jiffies without a transmission: twice as much for each `rto` jiffies, up to one
    /// packet an RTT. What was learnt of the queue is worth less with each, as a large window is
    /// (RFC 2861).
    pub(crate) fn idle(self, idle: u32, rto: u32) -> Self {
        // No overflow: below 2¹⁷, times 2⁸.
        let times = idle.checked_div(rto).unwrap_or(0).min(8);
        Self(self.0.max((self.0 << times).min(ONE)))
    }

    /// How long the first packet waits after nothing was in flight, in µs: some part of RTT/w, by
    /// `chance` of 2³². `None` from one packet an RTT on.
    ///
    /// N flows that are asked at once would answer at once, N packets whatever they want; a gap
    /// between the packets of a flow does nothing for that, one between the flows does.
    pub(crate) fn spread(self, rtt_us: u32, chance: u32) -> Option<u32> {
        if !self.is_below_floor() || self.0 >= ONE {
            return None;
        }
        // At most 16 RTTs: 2³² · 2⁴, times 2³² wraps only for an RTT of an hour; so cut first.
        let gap = u64::from(rtt_us)
            .wrapping_mul(ONE.into())
            .checked_div(self.0.into())
            .unwrap_or(0)
            .min(u32::MAX.into());
        Some((gap.wrapping_mul(chance.into()) >> 32) as u32)
    }

    /// After an ACK without a mark for `packets`: a packet more for each in slow start, and one
    /// packet more an RTT otherwise (RFC 5681 equation (3)), which is packets/w.
    ///
    /// Below one packet that is more than a packet an ACK, so one ACK without a mark is enough to
    /// leave. It has to be: only what raises all windows by the same, whatever they are, makes
    /// them alike, and a flow that has a packet in 16 RTTs cannot wait for many of them.
    pub(crate) fn acked(self, packets: u32, slow_start: bool) -> Self {
        if !self.is_below_floor() || packets == 0 {
            return self;
        }
        let w = u64::from(self.0);
        // No overflow: below 2⁴⁸, and times 2¹⁶ below 2⁶⁴.
        let packets = u64::from(packets).wrapping_mul(ONE.into());
        let more = if slow_start {
            packets
        } else {
            packets.wrapping_mul(ONE.into()).checked_div(w).unwrap_or(0)
        };
        Self::of(w.saturating_add(more))
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

/// The RTT that the pacing stands on: `known` µs so far (0: nothing yet), and the newest `sample`.
///
/// Down at once, up by an eighth an ACK. A receiver holds the ACK of a packet that comes alone for
/// up to 40 ms, and paced packets come alone; a smoothed RTT would take the delay for the path's,
/// the pacing would get slower by it and the next delay longer.
pub(crate) fn follow_rtt(known: u32, sample: u32) -> u32 {
    if known == 0 || sample < known {
        sample
    } else {
        known
            .saturating_add(known / 8)
            .saturating_add(1)
            .min(sample)
    }
}
