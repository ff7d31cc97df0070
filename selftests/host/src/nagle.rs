// SPDX-License-Identifier: GPL-2.0

//! Which pushes a policy covers: C1, C2, C3, C5, C7, over every combination of bits.

use crate::policy::{Counter, Policy, Push, Splice, Verdict};

const OFF: u8 = 1;
const CORK: u8 = 2;
const PUSH: u8 = 4;

fn push(nonagle: u8) -> Push {
    Push {
        nonagle,
        argument: nonagle.into(),
        more: false,
        spliced: false,
    }
}

#[test]
fn nodelay_is_covered() {
    // C1; 5 is what setsockopt(TCP_NODELAY) leaves for a moment.
    for bits in [OFF, OFF | PUSH] {
        assert_eq!(Policy::NoDelay.decide(push(bits)), Verdict::Covered);
    }
    // In the middle of a sendmsg() the argument is PUSH, whatever the socket says.
    let middle = Push {
        argument: PUSH.into(),
        ..push(OFF)
    };
    assert_eq!(Policy::NoDelay.decide(middle), Verdict::Covered);
    let plain = Push {
        argument: PUSH.into(),
        ..push(0)
    };
    assert_eq!(Policy::NoDelay.decide(plain), Verdict::LeftNagle);
}

#[test]
fn cork_and_more_are_left_alone() {
    // C2, C7: CORK, alone and with NODELAY.
    for bits in [CORK, CORK | OFF, CORK | PUSH, CORK | OFF | PUSH] {
        assert_eq!(Policy::NoDelay.decide(push(bits)), Verdict::LeftCork);
    }
    for bits in 0..8 {
        let more = Push {
            more: true,
            ..push(bits)
        };
        assert_eq!(Policy::NoDelay.decide(more), Verdict::LeftMore);
    }
}

#[test]
fn sockets_without_nodelay_are_left_alone() {
    // C5; and C3: NODELAY turned off again is no NODELAY.
    assert_eq!(Policy::NoDelay.decide(push(0)), Verdict::LeftNagle);
    assert_eq!(Policy::NoDelay.decide(push(PUSH)), Verdict::LeftNagle);
}

/// The literal rule of 2023 goes too far, which is why it is only there for comparison.
#[test]
fn nonagle_is_the_literal_rule() {
    for bits in 0..8u8 {
        let covered = Policy::NonAgle.decide(push(bits)) == Verdict::Covered;
        assert_eq!(covered, bits != 0);
    }
}

#[test]
fn stock_changes_nothing() {
    for bits in 0..=u8::MAX {
        for more in [false, true] {
            let push = Push { more, ..push(bits) };
            assert_eq!(Policy::Stock.decide(push), Verdict::LeftStock);
        }
    }
}

#[test]
fn names_and_numbers_come_back() {
    for policy in Policy::ALL {
        assert_eq!(Policy::from_name(policy.name().as_bytes()), Some(policy));
        assert_eq!(Policy::from_index(policy as u32), policy);
    }
    for name in ["", "Stock", "nodelay ", "nodelayx", "no", "\0"] {
        assert_eq!(Policy::from_name(name.as_bytes()), None, "{name:?}");
    }
    assert_eq!(Policy::from_index(99), Policy::Stock);
    assert_eq!(Policy::DEFAULT, Policy::NoDelay);
    for (i, counter) in Counter::ALL.into_iter().enumerate() {
        assert_eq!(counter.index(), i);
        assert!(
            counter
                .name()
                .bytes()
                .all(|b| b == b'_' || b.is_ascii_lowercase())
        );
    }
}

/// `bounded` is about the very pushes that `nodelay` covers, and leaves the others for the very
/// same reasons.
#[test]
fn bounded_covers_what_nodelay_does() {
    for bits in 0..8 {
        for more in [false, true] {
            for spliced in [false, true] {
                let push = Push {
                    more,
                    spliced,
                    ..push(bits)
                };
                let bounded = match Policy::Bounded.decide(push) {
                    Verdict::Bounded => Verdict::Covered,
                    other => other,
                };
                assert_eq!(bounded, Policy::NoDelay.decide(push));
            }
        }
    }
}

/// Spliced data counts as NODELAY; MSG_MORE and CORK keep their meaning, and a socket that has
/// NODELAY needs nothing.
#[test]
fn spliced_data_is_sent_at_once() {
    for bits in 0..8u8 {
        for more in [false, true] {
            let spliced = Push {
                more,
                spliced: true,
                ..push(bits)
            };
            assert_eq!(
                spliced.turns_nagle_off(),
                !more && bits & CORK == 0 && bits & OFF == 0
            );
            assert!(!push(bits).turns_nagle_off());
        }
    }
    let spliced = Push {
        spliced: true,
        ..push(0)
    };
    assert_eq!(Policy::NoDelay.decide(spliced), Verdict::Covered);
    assert_eq!(Policy::Bounded.decide(spliced), Verdict::Bounded);
    assert_eq!(Policy::Stock.decide(spliced), Verdict::LeftStock);
}

#[test]
fn splice_settings() {
    assert_eq!(Splice::DEFAULT, Splice::Loopback);
    for (index, on_loopback, elsewhere) in [
        (0, false, false),
        (1, true, false),
        (2, true, true),
        (3, false, false),
    ] {
        let splice = Splice::from_index(index);
        assert_eq!(splice.covers(|| false, || true), on_loopback);
        assert_eq!(splice.covers(|| false, || false), elsewhere);
        // Records are no forwarder's data, on any route.
        assert!(!splice.covers(|| true, || true));
        assert!(!splice.covers(|| true, || false));
    }
    assert_eq!(Splice::from_index(Splice::MAX), Splice::Everywhere);
}
