// SPDX-License-Identifier: GPL-2.0

//! PRR, the floor, idle time and pacing: known values from the RFCs and C, and properties.

use proptest::prelude::*;

use crate::dctcp::{
    floor::{Floor, MIN_CWND},
    idle::{Windows, is_idle},
    pacing::Pace,
    prr::{Ack, Reduction, Step},
};

const QUIET: Ack = Ack {
    delivered: 1,
    lost: 0,
    advanced: false,
};

/// The case that the floor is for: the first of two packets was lost, nothing else is in flight,
/// and PRR alone gives a window of 1.
#[test]
fn prr_alone_falls_to_one() {
    let entering = Reduction {
        ssthresh: 2,
        prior_cwnd: 2,
        delivered: 0,
        out: 0,
        in_flight: 0,
    };
    let step = entering.step(QUIET).unwrap();
    assert_eq!(
        step,
        Step {
            delivered: 1,
            cwnd: 1
        }
    );
    assert_eq!(Floor::Held.apply(step.cwnd), 2);
}

/// RFC 6937 §4: while more is in flight than ssthresh, sent/delivered stays ssthresh/prior_cwnd.
#[test]
fn prr_is_proportional() {
    let mut r = Reduction {
        ssthresh: 10,
        prior_cwnd: 20,
        delivered: 0,
        out: 0,
        in_flight: 20,
    };
    for n in 1..=10u32 {
        r.in_flight -= 1;
        let step = r.step(QUIET).unwrap();
        r.delivered = step.delivered;
        let may_send = step.cwnd.saturating_sub(r.in_flight);
        r.out += may_send;
        r.in_flight += may_send;
        // ⌈n/2⌉ of n, but for the fast retransmit that leaves at once.
        assert_eq!(r.out, n.div_ceil(2), "after {n} ACKs");
    }
}

#[test]
fn an_ack_that_delivers_nothing_changes_nothing() {
    let r = Reduction {
        ssthresh: 10,
        prior_cwnd: 20,
        delivered: 3,
        out: 2,
        in_flight: 12,
    };
    assert_eq!(
        r.step(Ack {
            delivered: 0,
            ..QUIET
        }),
        None
    );
    assert_eq!(Reduction { prior_cwnd: 0, ..r }.step(QUIET), None);
}

/// `rto_floor=N` means RFC 5681's window after an RTO, and nothing else.
#[test]
fn the_floor_is_waived_after_an_rto_only() {
    assert_eq!(Floor::for_state(true, true), Floor::Held);
    assert_eq!(Floor::for_state(false, true), Floor::Held);
    assert_eq!(Floor::for_state(false, false), Floor::Held);
    assert_eq!(Floor::for_state(true, false), Floor::Waived);
    assert_eq!(Floor::Waived.apply(1), 1);
    assert_eq!(Floor::Held.apply(1), MIN_CWND);
    assert_eq!(Floor::Held.apply(0), MIN_CWND);
    assert_eq!(Floor::Held.apply(7), 7);
}

const OPEN: Windows = Windows {
    cwnd: 80,
    ssthresh: 20,
    reducing: false,
};

#[test]
fn idle_time_halves_once_an_rto() {
    assert!(!is_idle(200, 200) && is_idle(201, 200));
    let after = |idle| OPEN.after_idle(idle, 200, 10);
    assert_eq!(after(201).cwnd, 40);
    assert_eq!(after(401).cwnd, 20);
    assert_eq!(after(601).cwnd, 10);
    assert_eq!(after(10_000).cwnd, 10);
    // Three quarters of what is given up are remembered.
    assert_eq!(after(201).ssthresh, 60);
    // In CWR the threshold has just been set.
    let cwr = Windows {
        reducing: true,
        ..OPEN
    };
    assert_eq!(cwr.after_idle(201, 200, 10).ssthresh, 20);
}

#[test]
fn a_window_that_is_not_used_moves_half_way() {
    assert_eq!(OPEN.after_underuse(20, 10).unwrap().cwnd, 50);
    assert_eq!(OPEN.after_underuse(4, 10).unwrap().cwnd, 45);
    assert_eq!(OPEN.after_underuse(80, 10), None);
}

const PACE: Pace = Pace {
    mss: 1448,
    cwnd: 10,
    ssthresh: 0x7fff_ffff,
    packets_out: 0,
    srtt_us_8: 8 * 1000,
    max_rate: u64::MAX,
};

#[test]
fn pacing_follows_the_window() {
    // 10 × 1448 bytes in 1 ms, twice.
    assert!(PACE.in_slow_start());
    assert_eq!(PACE.rate(200), 2 * 14_480_000);
    let avoiding = Pace {
        ssthresh: 10,
        ..PACE
    };
    assert!(!avoiding.in_slow_start());
    assert_eq!(avoiding.rate(120), 14_480_000 * 120 / 100);
    assert_eq!(
        Pace {
            max_rate: 1000,
            ..PACE
        }
        .rate(200),
        1000
    );
    // Without an RTT sample the rate is as good as unlimited, as in C.
    assert_eq!(
        Pace {
            srtt_us_8: 0,
            ..PACE
        }
        .rate(200),
        1448 * 80_000 * 200 * 10
    );
}

proptest! {
    /// No number panics, and with the floor held no window is below 2.
    #[test]
    fn prr_never_panics(ssthresh: u32, prior_cwnd: u32, delivered: u32, out: u32, in_flight: u32,
                        newly: u32, lost: u32, advanced: bool) {
        let r = Reduction { ssthresh, prior_cwnd, delivered, out, in_flight };
        if let Some(step) = r.step(Ack { delivered: newly, lost, advanced }) {
            prop_assert!(Floor::Held.apply(step.cwnd) >= MIN_CWND);
        }
    }

    /// Packet conservation (RFC 6937 §1): during a reduction no more leaves than was delivered, but
    /// for what this ACK delivered and one packet of slow start.
    #[test]
    fn prr_conserves_packets(ssthresh in 2u32..1000, prior in 2u32..2000, delivered in 0u32..2000,
                             out in 0u32..2000, in_flight in 0u32..2000, newly in 1u32..64,
                             lost in 0u32..64, advanced: bool) {
        prop_assume!(ssthresh <= prior);
        let r = Reduction { ssthresh, prior_cwnd: prior, delivered, out, in_flight };
        let step = r.step(Ack { delivered: newly, lost, advanced }).unwrap();
        let owed = (delivered + newly).saturating_sub(out).max(newly);
        prop_assert!(step.cwnd <= in_flight + owed + 1);
    }

    #[test]
    fn idle_time_never_panics(cwnd: u32, ssthresh: u32, reducing: bool, idle: u32, rto: u32,
                              restart: u32, used: u32) {
        let w = Windows { cwnd, ssthresh, reducing };
        let after = w.after_idle(idle, rto, restart);
        prop_assert!(after.cwnd <= cwnd);
        prop_assert!(after.cwnd >= restart.min(cwnd));
        prop_assert!(after.ssthresh >= ssthresh);
        if let Some(after) = w.after_underuse(used, restart) {
            prop_assert!(after.cwnd < cwnd && after.cwnd >= used.max(restart));
        }
    }

    #[test]
    fn pacing_never_panics(mss: u32, cwnd: u32, ssthresh: u32, packets_out: u32, srtt_us_8: u32,
                           ratio: u32, max_rate: u64) {
        let rate = Pace { mss, cwnd, ssthresh, packets_out, srtt_us_8, max_rate }.rate(ratio);
        prop_assert!(rate <= max_rate);
    }
}
