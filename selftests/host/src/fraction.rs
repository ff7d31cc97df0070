// SPDX-License-Identifier: GPL-2.0

//! Windows below the floor: known values, and what holds for all of them.

use proptest::prelude::*;

use crate::dctcp::{
    alpha::{MAX_ALPHA, ssthresh_lost},
    fraction::{Fraction, begins_with, follow_rtt},
};

/// One packet, and the least window, in the unit of [`Fraction::to_raw`].
const ONE: u32 = 1 << 16;
const LEAST: u32 = ONE / 2;

/// A window of so many 1/65536 packets.
fn of(raw: u32) -> Fraction {
    Fraction::from_raw(raw)
}

/// Any window below 2 packets.
fn below() -> impl Strategy<Value = Fraction> {
    (LEAST..2 * ONE).prop_map(of)
}

#[test]
fn two_packets_and_losses() {
    // cwnd 2 and all marked: 1, 1/2 and no less.
    let mut w = Fraction::NONE;
    for wanted in [ONE, LEAST, LEAST] {
        w = w.lost(2, MAX_ALPHA);
        assert_eq!(w.to_raw(), wanted);
    }
}

#[test]
fn the_clamp_of_ssthresh_is_not_in_it() {
    // Stock goes to 2, half of 3 is less; half of 4 is the floor.
    assert_eq!(ssthresh_lost(3), 2);
    assert_eq!(Fraction::NONE.lost(3, MAX_ALPHA).to_raw(), 3 * ONE / 2);
    assert_eq!(Fraction::NONE.lost(4, MAX_ALPHA), Fraction::NONE);
}

#[test]
fn marks_on_a_quarter_sustain_the_floor() {
    for alpha in [0, 255, 256] {
        assert_eq!(Fraction::NONE.lost(2, alpha), Fraction::NONE);
        assert_eq!(Fraction::NONE.timed_out(2, alpha), Fraction::NONE);
        assert_eq!(of(LEAST).lost(2, alpha), Fraction::NONE);
        assert_eq!(of(LEAST).acked(1, alpha), Fraction::NONE);
    }
    assert!(Fraction::NONE.lost(2, 257).is_below_floor());
    assert!(Fraction::NONE.timed_out(2, 257).is_below_floor());
    assert!(of(LEAST).acked(1, 257).is_below_floor());
}

/// ACKs for one packet, until w is at the floor again.
fn acks_to_the_floor(mut w: Fraction) -> u32 {
    let mut acks = 0;
    while w.is_below_floor() {
        w = w.acked(1, MAX_ALPHA);
        acks += 1;
    }
    acks
}

#[test]
fn a_packet_more_in_128_rtts() {
    // At w = 1/2 an ACK comes once in 2 RTTs, at w = 1 once an RTT, at 3/2 thrice in two.
    assert_eq!(of(ONE / 2).acked(1, MAX_ALPHA).to_raw(), ONE / 2 + ONE / 64);
    assert_eq!(of(ONE).acked(1, MAX_ALPHA).to_raw(), ONE + ONE / 128);
    assert_eq!(of(ONE).acked(3, MAX_ALPHA).to_raw(), ONE + 3 * ONE / 128);
    assert_eq!(of(ONE).acked(0, MAX_ALPHA), of(ONE));
    assert_eq!(of(ONE).acked(0, 0), of(ONE));
    // 128 RTTs from 1 to 2 with 3/2 packets in each, and as many from 1/2 to 1 and more.
    assert!((185..=195).contains(&acks_to_the_floor(of(ONE))));
    assert!((235..=245).contains(&acks_to_the_floor(of(LEAST))));
}

#[test]
fn an_rto_leaves_one_packet_at_most() {
    assert_eq!(Fraction::NONE.timed_out(3, MAX_ALPHA).to_raw(), ONE);
    assert_eq!(Fraction::NONE.timed_out(2, MAX_ALPHA).to_raw(), ONE);
    assert_eq!(
        of(3 * ONE / 2).timed_out(2, MAX_ALPHA).to_raw(),
        3 * ONE / 4
    );
    assert_eq!(of(LEAST).timed_out(2, MAX_ALPHA).to_raw(), LEAST);
    // Half of a larger window is not below the floor.
    assert_eq!(Fraction::NONE.timed_out(4, MAX_ALPHA), Fraction::NONE);
}

#[test]
fn a_start_is_not_larger_than_what_the_last_mark_left() {
    assert_eq!(begins_with(5, 3, MAX_ALPHA), 3);
    assert_eq!(begins_with(5, 3, MAX_ALPHA / 4 + 1), 3);
    // Few marks, no mark yet, nothing gained, and the floor.
    assert_eq!(begins_with(5, 3, MAX_ALPHA / 4), 5);
    assert_eq!(begins_with(28, 0x7fff_ffff, MAX_ALPHA), 28);
    assert_eq!(begins_with(2, 3, MAX_ALPHA), 2);
    assert_eq!(begins_with(5, 1, MAX_ALPHA), 2);
}

#[test]
fn the_rate_has_no_headroom() {
    // A packet of 1448 bytes in an RTT of 1 ms, and one in 2 of them.
    assert_eq!(of(ONE).rate(1448, 1000), Some(1_448_000));
    assert_eq!(of(LEAST).rate(1448, 1000), Some(724_000));
    assert_eq!(Fraction::NONE.rate(1448, 1000), None);
    // No RTT is known yet.
    assert!(of(LEAST).rate(1448, 0).is_some());
}

#[test]
fn starts_are_spread_over_the_time_of_a_packet() {
    let last = u32::MAX;
    assert_eq!(of(LEAST).spread(1000, 0), Some(0));
    assert_eq!(of(LEAST).spread(1000, 1 << 31), Some(1000));
    assert_eq!(of(LEAST).spread(1000, last), Some(1999));
    assert_eq!(of(ONE - 1).spread(1000, last), Some(999));
    assert_eq!(of(ONE).spread(1000, last), None);
    // An RTT of more than half an hour is cut, and does not wrap.
    assert_eq!(of(LEAST).spread(u32::MAX, last), Some(u32::MAX - 1));
}

#[test]
fn a_delayed_ack_is_not_taken_for_the_path() {
    assert_eq!(follow_rtt(0, 1000, 0), 1000);
    assert_eq!(follow_rtt(1000, 400, 0), 400);
    assert_eq!(follow_rtt(1000, 999, 0), 999);
    assert_eq!(follow_rtt(400, 40_400, 0), 451);
    // The path's own growth is followed all the way.
    let grown = (0..30).fold(400, |rtt, _| follow_rtt(rtt, 4000, 0));
    assert_eq!(grown, 4000);
}

#[test]
fn a_queue_that_fills_is_followed_at_once() {
    assert_eq!(follow_rtt(400, 4000, 5000), 4000);
    assert_eq!(follow_rtt(400, 40_400, 5000), 5000);
    assert_eq!(follow_rtt(5000, 40_400, 5000), 5626);
    assert_eq!(follow_rtt(5000, 400, 5000), 400);
}

proptest! {
    /// Where half of the window is 2 packets or more, nothing is below the floor: the same as stock.
    #[test]
    fn above_the_floor_is_stocks(cwnd in 0u32..8, large: u32, alpha in 0..=MAX_ALPHA) {
        for cwnd in [cwnd, large] {
            let above = cwnd >= 4 || alpha <= MAX_ALPHA / 4;
            prop_assert_eq!(Fraction::NONE.lost(cwnd, alpha) == Fraction::NONE, above);
            prop_assert_eq!(Fraction::NONE.timed_out(cwnd, alpha) == Fraction::NONE, above);
        }
    }

    /// Nothing that happens takes it out of its bounds; no number panics.
    #[test]
    fn it_stays_in_its_bounds(raw: u32, cwnd: u32, alpha: u32, packets: u32, mss: u32, rtt: u32,
                              sample: u32) {
        let w = of(raw);
        for next in [w.lost(cwnd, alpha), w.timed_out(cwnd, alpha), w.acked(packets, alpha)] {
            let raw = next.to_raw();
            let untouched = next == w;
            prop_assert!(raw == 0 || untouched || (LEAST..2 * ONE).contains(&raw));
        }
        _ = w.rate(mss, rtt);
        _ = follow_rtt(rtt, sample, raw);
    }

    /// Losses never raise it, and ACKs never lower it.
    #[test]
    fn it_is_monotone(w in below(), alpha in MAX_ALPHA / 4 + 1..=MAX_ALPHA, packets in 1u32..64) {
        prop_assert!(w.lost(2, alpha).to_raw() <= w.to_raw());
        prop_assert!(w.timed_out(2, alpha).to_raw() <= w.lost(2, alpha).to_raw());
        let acked = w.acked(packets, alpha);
        prop_assert!(!acked.is_below_floor() || acked.to_raw() > w.to_raw());
        let more = w.acked(packets + 1, alpha);
        prop_assert!(!more.is_below_floor() || more.to_raw() >= acked.to_raw());
    }

    /// A loss halves it, whatever alpha is, where marks do not sustain the floor.
    #[test]
    fn a_loss_halves(w in below(), alpha in MAX_ALPHA / 4 + 1..=MAX_ALPHA) {
        prop_assert_eq!(w.lost(2, alpha).to_raw(), (w.to_raw() / 2).max(LEAST));
    }

    /// All windows are raised by about the same in the same time: they become alike.
    #[test]
    fn it_makes_windows_alike(w in below()) {
        // An RTT: w packets, here 64 RTTs at once.
        let packets = (64 * u64::from(w.to_raw()) / u64::from(ONE)) as u32;
        let raised = w.acked(packets, MAX_ALPHA);
        if raised.is_below_floor() {
            let more = raised.to_raw() - w.to_raw();
            prop_assert!((ONE / 2 - ONE / 64..=ONE / 2).contains(&more));
        }
    }

    /// A start raises no window, and takes none below the floor.
    #[test]
    fn starts_only_lower(cwnd: u32, ssthresh: u32, alpha: u32) {
        let start = begins_with(cwnd, ssthresh, alpha);
        prop_assert!(start <= cwnd && start >= cwnd.min(2));
    }

    /// A flow begins within the time that it would take for a packet; from one an RTT on at once.
    #[test]
    fn starts_are_spread(w in below(), rtt in 1u32..1_000_000, chance: u32) {
        let gap = u64::from(rtt) * u64::from(ONE) / u64::from(w.to_raw());
        match w.spread(rtt, chance) {
            None => prop_assert!(w.to_raw() >= ONE),
            Some(wait) => {
                prop_assert!(w.to_raw() < ONE && u64::from(wait) < gap.max(1));
                let other = w.spread(rtt, u32::MAX - chance).unwrap();
                prop_assert!(u64::from(wait) + u64::from(other) <= gap);
            }
        }
        prop_assert_eq!(Fraction::NONE.spread(rtt, chance), None);
        _ = of(chance).spread(u32::MAX, rtt);
    }

    /// A larger window is never paced more slowly, a longer RTT never faster; never at 0.
    #[test]
    fn the_rate_is_monotone(w in below(), more in below(), mss in 1u32..65536, rtt: u32,
                            longer: u32) {
        prop_assume!(w.to_raw() <= more.to_raw() && rtt <= longer);
        let rate = w.rate(mss, rtt).unwrap();
        prop_assert!(rate >= 1);
        prop_assert!(more.rate(mss, rtt).unwrap() >= rate);
        prop_assert!(w.rate(mss, longer).unwrap() <= rate);
    }

    /// The RTT lies between the newest sample and what was known, and is never 0 when neither is.
    #[test]
    fn the_rtt_follows(known in 1u32.., sample in 1u32.., lossy: u32) {
        let rtt = follow_rtt(known, sample, lossy);
        prop_assert!(rtt >= known.min(sample) && rtt <= known.max(sample));
        prop_assert!(rtt == sample || rtt > known || known == sample);
        prop_assert!(sample > lossy || rtt == sample);
    }
}
