// SPDX-License-Identifier: GPL-2.0

//! Windows below the floor: known values, and what holds for all of them.

use proptest::prelude::*;

use crate::dctcp::{
    alpha::{MAX_ALPHA, ssthresh_lost, ssthresh_marked},
    fraction::{Fraction, follow_rtt},
};

/// One packet, and the least window, in the unit of [`Fraction::to_raw`].
const ONE: u32 = 1 << 16;
const LEAST: u32 = ONE / 16;

/// A window of so many 1/65536 packets.
fn of(raw: u32) -> Fraction {
    Fraction::from_raw(raw)
}

/// Any window below 2 packets.
fn below() -> impl Strategy<Value = Fraction> {
    (LEAST..2 * ONE).prop_map(of)
}

#[test]
fn two_packets_and_every_one_marked() {
    // cwnd 2, alpha 1: 1, 1/2, 1/4, 1/8, 1/16 and no less.
    let mut w = Fraction::NONE;
    for wanted in [ONE, ONE / 2, ONE / 4, ONE / 8, LEAST, LEAST] {
        w = w.marked(2, MAX_ALPHA);
        assert_eq!(w.to_raw(), wanted);
    }
}

#[test]
fn the_clamp_of_ssthresh_is_not_in_it() {
    // Stock asks for 2 in each of these; DCTCP wants less.
    assert_eq!(ssthresh_marked(3, MAX_ALPHA), 2);
    assert_eq!(Fraction::NONE.marked(3, MAX_ALPHA).to_raw(), 3 * ONE / 2);
    assert_eq!(ssthresh_marked(2, 768), 2);
    assert_eq!(Fraction::NONE.marked(2, 768).to_raw(), 5 * ONE / 4);
    assert_eq!(ssthresh_lost(3), 2);
    assert_eq!(Fraction::NONE.lost(3).to_raw(), 3 * ONE / 2);
    // Marks on half of the packets sustain 2.
    assert_eq!(Fraction::NONE.marked(2, 512), Fraction::NONE);
    assert_eq!(Fraction::NONE.marked(2, 0), Fraction::NONE);
}

#[test]
fn a_run_of_marks_does_not_starve() {
    // Two of three are marked: alpha sustains 1 packet, however many marks come in a row.
    let mut w = Fraction::NONE;
    for _ in 0..100 {
        w = w.marked(2, 683);
    }
    assert_eq!(w.to_raw() / 1000, ONE * 682 / 683 / 1000);
    // What is below that already stays where it is.
    assert_eq!(of(ONE / 4).marked(2, 683).to_raw(), ONE / 4);
}

#[test]
fn a_packet_more_an_rtt() {
    // At w = 1 an ACK comes once an RTT, at w = 1/4 once in four.
    assert_eq!(of(ONE).acked(1, false), Fraction::NONE);
    assert_eq!(of(ONE / 4).acked(1, false), Fraction::NONE);
    assert_eq!(of(3 * ONE / 2).acked(1, false), Fraction::NONE);
    assert_eq!(of(ONE).acked(0, false), of(ONE));
}

#[test]
fn an_rto_leaves_one_packet_at_most() {
    assert_eq!(Fraction::NONE.timed_out(10).to_raw(), ONE);
    assert_eq!(Fraction::NONE.timed_out(2).to_raw(), ONE);
    assert_eq!(of(ONE / 2).timed_out(2).to_raw(), ONE / 4);
    // Slow start, which follows from a larger window, is over it after an ACK.
    assert_eq!(of(ONE).acked(1, true), Fraction::NONE);
}

#[test]
fn idle_time_brings_back_one_packet() {
    assert_eq!(of(LEAST).idle(199, 200), of(LEAST));
    assert_eq!(of(LEAST).idle(200, 200), of(2 * LEAST));
    assert_eq!(of(LEAST).idle(400, 200), of(4 * LEAST));
    assert_eq!(of(LEAST).idle(10_000, 200), of(ONE));
    assert_eq!(of(ONE + 1).idle(10_000, 200), of(ONE + 1));
    assert_eq!(Fraction::NONE.idle(10_000, 200), Fraction::NONE);
    assert_eq!(of(2 * ONE - 1).idle(u32::MAX, 1), of(2 * ONE - 1));
    assert_eq!(of(LEAST).idle(u32::MAX, 0), of(LEAST));
}

#[test]
fn the_rate_has_no_headroom() {
    // A packet of 1448 bytes in an RTT of 1 ms, and one in 16 of them.
    assert_eq!(of(ONE).rate(1448, 1000), Some(1_448_000));
    assert_eq!(of(LEAST).rate(1448, 1000), Some(90_500));
    assert_eq!(Fraction::NONE.rate(1448, 1000), None);
}

#[test]
fn a_delayed_ack_is_not_taken_for_the_path() {
    assert_eq!(follow_rtt(0, 1000), 1000);
    assert_eq!(follow_rtt(1000, 400), 400);
    assert_eq!(follow_rtt(400, 40_400), 451);
    // The path's own growth is followed all the way.
    let grown = (0..30).fold(400, |rtt, _| follow_rtt(rtt, 4000));
    assert_eq!(grown, 4000);
}

proptest! {
    /// Where stock's window is above its clamp, nothing is below the floor: the same as stock.
    #[test]
    fn above_the_floor_is_stocks(cwnd: u32, alpha in 0..=MAX_ALPHA) {
        // Stock's window in 1/2048 packets, without the clamp and before it is rounded.
        let wanted = u64::from(cwnd) * u64::from(2 * MAX_ALPHA - alpha);
        let above = wanted >= u64::from(2 * 2 * MAX_ALPHA) || cwnd >= 2 && alpha <= MAX_ALPHA / 2;
        prop_assert_eq!(Fraction::NONE.marked(cwnd, alpha) == Fraction::NONE, above);
        if ssthresh_marked(cwnd, alpha) > 2 && cwnd < u32::MAX / MAX_ALPHA {
            prop_assert_eq!(Fraction::NONE.marked(cwnd, alpha), Fraction::NONE);
        }
        prop_assert_eq!(Fraction::NONE.lost(cwnd) == Fraction::NONE, cwnd >= 4);
    }

    /// Nothing that happens takes it out of its bounds; no number panics.
    #[test]
    fn it_stays_in_its_bounds(raw: u32, cwnd: u32, alpha: u32, packets: u32, slow_start: bool,
                              mss: u32, rtt: u32, sample: u32) {
        let w = of(raw);
        for next in [w.marked(cwnd, alpha), w.lost(cwnd), w.timed_out(cwnd),
                     w.acked(packets, slow_start)] {
            let raw = next.to_raw();
            let untouched = next == w;
            prop_assert!(raw == 0 || untouched || (LEAST..2 * ONE).contains(&raw));
        }
        _ = w.rate(mss, rtt);
        _ = follow_rtt(rtt, sample);
    }

    /// Marks and losses never raise it, more marks lower it more, and ACKs never lower it.
    #[test]
    fn it_is_monotone(w in below(), alpha in 0..=MAX_ALPHA, packets in 1u32..64) {
        let marked = w.marked(2, alpha);
        prop_assert!(marked.is_below_floor() && marked.to_raw() <= w.to_raw());
        prop_assert!(w.marked(2, alpha.min(MAX_ALPHA - 1) + 1).to_raw() <= marked.to_raw());
        prop_assert!(w.lost(2).to_raw() <= marked.to_raw());
        prop_assert!(w.timed_out(2).to_raw() <= w.lost(2).to_raw());
        for slow_start in [false, true] {
            let acked = w.acked(packets, slow_start);
            prop_assert!(!acked.is_below_floor() || acked.to_raw() > w.to_raw());
            let more = w.acked(packets + 1, slow_start);
            prop_assert!(!more.is_below_floor() || more.to_raw() >= acked.to_raw());
        }
    }

    /// A loss halves it, whatever alpha is.
    #[test]
    fn a_loss_halves(w in below()) {
        prop_assert_eq!(w.lost(2).to_raw(), (w.to_raw() / 2).max(LEAST));
    }

    /// Two ACKs without a mark end it, whatever it was.
    #[test]
    fn it_is_left(w in below()) {
        prop_assert_eq!(w.acked(1, false).acked(1, false), Fraction::NONE);
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
        prop_assert!(w.idle(rtt, chance).to_raw() >= w.to_raw());
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

    /// The RTT lies between the newest sample and what was known.
    #[test]
    fn the_rtt_follows(known in 1u32.., sample in 1u32..) {
        let rtt = follow_rtt(known, sample);
        prop_assert!(rtt >= known.min(sample) && rtt <= known.max(sample));
        prop_assert!(rtt == sample || rtt > known || known == sample);
    }
}
