// SPDX-License-Identifier: GPL-2.0

//! 2018's reduction against today's.

use crate::{
    dctcp::prr::{self, Reduction},
    prr_2018::{Ack, step},
};

fn windows(reduction: Reduction, delivered: u32) -> (Option<u32>, Option<u32>) {
    let old = Ack {
        delivered,
        retransmission_arrived: false,
    };
    let new = prr::Ack {
        delivered,
        lost: 0,
        advanced: true,
    };
    (
        step(reduction, old).map(|s| s.cwnd),
        reduction.step(new).map(|s| s.cwnd),
    )
}

/// The ACK of the last packet of a request brings ECE: nothing is in flight, ssthresh is at its
/// floor. 2018 ends at one packet, today at two.
#[test]
fn ce_on_the_last_packet_leaves_one() {
    let reduction = Reduction {
        ssthresh: 2,
        prior_cwnd: 2,
        delivered: 0,
        out: 0,
        in_flight: 0,
    };
    assert_eq!(windows(reduction, 1), (Some(1), Some(2)));
    assert_eq!(windows(reduction, 2), (Some(2), Some(2)));
}

/// Above ssthresh both are proportional, so both are the same.
#[test]
fn above_ssthresh_both_are_the_same() {
    for in_flight in 6..40 {
        for delivered in 1..10 {
            for out in 0..10 {
                let reduction = Reduction {
                    ssthresh: 5,
                    prior_cwnd: 20,
                    delivered: 3,
                    out,
                    in_flight,
                };
                let (old, new) = windows(reduction, delivered);
                assert_eq!(old, new, "{reduction:?}, {delivered}");
            }
        }
    }
}

/// 2018's window is never above today's for an ACK that covers no retransmission.
#[test]
fn never_more_than_today() {
    for ssthresh in 2..8 {
        for in_flight in 0..10 {
            for delivered in 1..6 {
                for out in 0..6 {
                    let reduction = Reduction {
                        ssthresh,
                        prior_cwnd: 10,
                        delivered: 2,
                        out,
                        in_flight,
                    };
                    let (old, new) = windows(reduction, delivered);
                    assert!(old <= new, "{reduction:?}, {delivered}");
                }
            }
        }
    }
}

#[test]
fn a_retransmission_that_arrived_lets_one_more_leave() {
    let reduction = Reduction {
        ssthresh: 10,
        prior_cwnd: 20,
        delivered: 4,
        out: 4,
        in_flight: 3,
    };
    let cwnd = |retransmission_arrived| {
        step(
            reduction,
            Ack {
                delivered: 2,
                retransmission_arrived,
            },
        )
        .map(|s| s.cwnd)
    };
    assert_eq!((cwnd(false), cwnd(true)), (Some(5), Some(6)));
}

#[test]
fn nothing_delivered_or_no_episode_changes_nothing() {
    let reduction = Reduction {
        ssthresh: 2,
        prior_cwnd: 2,
        delivered: 0,
        out: 0,
        in_flight: 0,
    };
    assert_eq!(windows(reduction, 0).0, None);
    assert_eq!(windows(reduction, 1 << 31).0, None);
    assert_eq!(
        windows(
            Reduction {
                prior_cwnd: 0,
                ..reduction
            },
            1
        )
        .0,
        None
    );
}

/// Debug builds panic on overflow; nothing here does.
#[test]
fn no_number_overflows() {
    let edges = [0, 1, 2, i32::MAX as u32, 1 << 31, u32::MAX];
    for ssthresh in edges {
        for prior_cwnd in edges {
            for delivered in edges {
                for out in edges {
                    for in_flight in edges {
                        let reduction = Reduction {
                            ssthresh,
                            prior_cwnd,
                            delivered,
                            out,
                            in_flight,
                        };
                        for delivered in edges {
                            for retransmission_arrived in [false, true] {
                                step(
                                    reduction,
                                    Ack {
                                        delivered,
                                        retransmission_arrived,
                                    },
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}
