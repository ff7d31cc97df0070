// SPDX-License-Identifier: GPL-2.0

//! rust/dctcp against references in wide integers: what the RFCs and C mean, with the 32 bits that
//! C keeps of it taken by a modulus. See the crate `fuzz` for how targets are run.

use std::{format, hint::black_box, panic::catch_unwind, vec::Vec};

use ::fuzz::{check, corpus};
use proptest::{collection::vec, prelude::*};

use crate::dctcp::{
    alpha::{MAX_ALPHA, Window, ssthresh_lost, ssthresh_marked},
    ce::on_segment,
    floor::{Floor, MIN_CWND},
    idle::{Windows, is_idle},
    pacing::Pace,
    prr::{Ack, Reduction},
};

const CASES: u32 = 8192;

/// Any number of 32 bits; small ones, and those at the edges of C's types, more often.
fn word() -> impl Strategy<Value = u32> {
    let edge = prop::sample::select(Vec::from([0, 1 << 16, 1 << 22, 1 << 31, u32::MAX]));
    prop_oneof![
        2 => any::<u32>(),
        2 => 0u32..64,
        1 => 0u32..100_000,
        1 => (edge, -2i32..=2).prop_map(|(edge, by)| edge.wrapping_add_signed(by)),
    ]
}

/// What is left of a number in C's `u32`.
fn low(n: i128) -> i128 {
    n.rem_euclid(1 << 32)
}

/// What is left of a number in C's `int`.
fn int(n: i128) -> i128 {
    (n + (1 << 31)).rem_euclid(1 << 32) - (1 << 31)
}

/// Without them a run would show much less than it says.
#[test]
fn fuzz_with_overflow_checks() {
    assert!(catch_unwind(|| black_box(u32::MAX) + black_box(1)).is_err());
}

#[test]
fn fuzz_alpha() {
    let input = (
        word(),
        word(),
        0..=MAX_ALPHA,
        prop_oneof![0u32..=12, word()],
    );
    check(
        corpus!("alpha"),
        CASES,
        input,
        |(delivered, ce, alpha, g)| {
            let window = Window {
                delivered,
                delivered_ce: ce,
            };
            let (d, m, a) = (i128::from(delivered), i128::from(ce), i128::from(alpha));
            let g = g.min(10);
            // RFC 8257 §3.3: α − α·2⁻ᵍ + F·2⁻ᵍ, all of α where α·2⁻ᵍ rounds to 0.
            let decay = if a >> g == 0 { a } else { a >> g };
            let gain = low(m << (10 - g)) / d.max(1);
            // C's sum is 32 bits too, and wraps when 2²¹ times as much was marked as delivered.
            let expected = low(a - decay + gain).min(1024);
            prop_assert_eq!(i128::from(window.next_alpha(alpha, g)), expected);

            let ratio = (d != 0).then(|| low(m << 8) / d);
            prop_assert_eq!(window.ce_ratio().map(i128::from), ratio);
            Ok(())
        },
    );
}

#[test]
fn fuzz_ssthresh() {
    check(
        corpus!("ssthresh"),
        CASES,
        (word(), word()),
        |(cwnd, alpha)| {
            let (c, a) = (i128::from(cwnd), i128::from(alpha));
            let marked = low(c - (low(c * a) >> 11)).max(2);
            prop_assert_eq!(i128::from(ssthresh_marked(cwnd, alpha)), marked);
            prop_assert_eq!(i128::from(ssthresh_lost(cwnd)), (c / 2).max(2));
            // Where C's product fits, the cut is cwnd·α/2 and no more than half.
            if alpha <= MAX_ALPHA && c * a < 1 << 32 {
                prop_assert!(marked >= c / 2 && marked <= c.max(2));
            }
            Ok(())
        },
    );
}

/// RFC 8257 §3.2: under delayed ACKs of `every` segments, each marked segment is acknowledged with
/// ECE and no other one is.
#[test]
fn fuzz_ce() {
    let input = (vec(any::<bool>(), 0..100), 2usize..5);
    check(corpus!("ce"), CASES / 4, input, |(marks, every)| {
        let (mut ece, mut acked) = (false, Vec::new());
        for (n, &marked) in marks.iter().enumerate() {
            let pending = n - acked.len();
            let todo = on_segment(ece, marked, pending > 0);
            prop_assert!(!todo.ack_pending_with_old_state || pending > 0);
            if todo.ack_pending_with_old_state {
                acked.resize(n, ece);
            }
            ece = todo.echo;
            if todo.ack_now || n + 1 - acked.len() >= every {
                acked.resize(n + 1, ece);
            }
        }
        // The delayed ACK timer.
        acked.resize(marks.len(), ece);
        prop_assert_eq!(acked, marks);
        Ok(())
    });
}

#[test]
fn fuzz_floor() {
    let input = (word(), any::<bool>(), any::<bool>());
    check(
        corpus!("floor"),
        CASES,
        input,
        |(cwnd, in_loss, rto_floor)| {
            let floor = Floor::for_state(in_loss, rto_floor);
            let after = floor.apply(cwnd);
            prop_assert_eq!(floor.apply(after), after);
            prop_assert!(after == cwnd || cwnd < MIN_CWND);
            // Only after an RTO, and only where the operator said so, may a window of 1 stand.
            prop_assert!(after >= 2 || in_loss && !rto_floor);
            Ok(())
        },
    );
}

#[test]
fn fuzz_idle() {
    let input = (word(), word(), any::<bool>(), word(), word(), word());
    check(
        corpus!("idle"),
        CASES,
        input,
        |(cwnd, ssthresh, reducing, idle, rto, init)| {
            let windows = Windows {
                cwnd,
                ssthresh,
                reducing,
            };
            let (c, s, i) = (i128::from(cwnd), i128::from(ssthresh), i128::from(init));
            let (elapsed, rto_) = (i128::from(idle), i128::from(rto));
            prop_assert_eq!(is_idle(idle, rto), elapsed > rto_);

            let remembered = if reducing { s } else { s.max(c / 2 + c / 4) };
            // tcp_cwnd_restart(): while ((delta -= rto) > 0 && cwnd > restart_cwnd) cwnd >>= 1;
            let (mut left, mut shifted, restart) = (int(elapsed - rto_), c, i.min(c));
            while left > 0 && shifted > restart {
                shifted /= 2;
                left = int(left - rto_);
            }
            let after = windows.after_idle(idle, rto, init);
            prop_assert_eq!(i128::from(after.cwnd), shifted.max(restart));
            prop_assert_eq!(i128::from(after.ssthresh), remembered);
            prop_assert!(after.cwnd <= cwnd && after.reducing == reducing);

            // tcp_cwnd_application_limited(): (cwnd + win_used) >> 1, here without C's carry lost.
            let used = elapsed.max(i);
            let after = windows.after_underuse(idle, init);
            prop_assert_eq!(after.is_some(), used < c);
            if let Some(after) = after {
                prop_assert_eq!(i128::from(after.cwnd), (c + used) / 2);
                prop_assert_eq!(i128::from(after.ssthresh), remembered);
            }
            Ok(())
        },
    );
}

#[test]
fn fuzz_pacing() {
    let input = (word(), word(), word(), word(), word(), any::<u64>(), word());
    check(
        corpus!("pacing"),
        CASES,
        input,
        |(mss, cwnd, ssthresh, packets_out, srtt, max_rate, ratio)| {
            let pace = Pace {
                mss,
                cwnd,
                ssthresh,
                packets_out,
                srtt_us_8: srtt,
                max_rate,
            };
            let window = u128::from(cwnd.max(packets_out));
            let product = u128::from(mss) * 80_000;
            let product = (product * u128::from(ratio)) % (1 << 64) * window % (1 << 64);
            let rate = product.checked_div(u128::from(srtt)).unwrap_or(product);
            prop_assert_eq!(u128::from(pace.rate(ratio)), rate.min(u128::from(max_rate)));
            prop_assert_eq!(pace.in_slow_start(), cwnd < ssthresh / 2);
            Ok(())
        },
    );
}

#[test]
fn fuzz_prr() {
    let sums = (word(), word(), word(), word(), word());
    let ack = (word(), prop_oneof![Just(0), word()], any::<bool>());
    check(corpus!("prr"), CASES, (sums, ack), |(sums, ack)| {
        let (ssthresh, prior_cwnd, delivered, out, in_flight) = sums;
        let (newly, lost, advanced) = ack;
        let reduction = Reduction {
            ssthresh,
            prior_cwnd,
            delivered,
            out,
            in_flight,
        };
        let step = reduction.step(Ack {
            delivered: newly,
            lost,
            advanced,
        });

        // tcp_cwnd_reduction() of C, whose numbers are int.
        let wide = i128::from;
        if int(wide(newly)) <= 0 || prior_cwnd == 0 {
            prop_assert_eq!(step, None);
            return Ok(());
        }
        let sum = low(wide(delivered) + wide(newly));
        let delta = int(wide(ssthresh) - wide(in_flight));
        let mut send = if delta < 0 {
            let dividend = wide(ssthresh) * sum + wide(prior_cwnd) - 1;
            int(dividend / wide(prior_cwnd) - wide(out))
        } else {
            let mut send = int(sum - wide(out)).max(int(wide(newly)));
            if advanced && lost == 0 {
                send = int(send + 1);
            }
            send.min(delta)
        };
        send = send.max(wide(u32::from(out == 0)));
        let cwnd = int(wide(in_flight) + send).max(0);

        let Some(step) = step else {
            return Err(TestCaseError::fail("an ACK in an episode is a step"));
        };
        prop_assert_eq!(wide(step.delivered), sum);
        prop_assert_eq!(wide(step.cwnd), cwnd, "{}", format!("send {send}"));
        prop_assert!(Floor::Held.apply(step.cwnd) >= MIN_CWND);
        Ok(())
    });
}

/// An episode as a sender lives it: whatever is delivered and lost, the window under the floor is
/// never below 2 and never above where the episode began.
#[test]
fn fuzz_episode() {
    let input = (
        2u32..500,
        0u32..=1024,
        vec((0u32..8, 0u32..4, any::<bool>()), 0..60),
    );
    check(
        corpus!("episode"),
        CASES / 4,
        input,
        |(prior, alpha, acks)| {
            let mut r = Reduction {
                ssthresh: ssthresh_marked(prior, alpha),
                prior_cwnd: prior,
                delivered: 0,
                out: 0,
                in_flight: prior,
            };
            for (newly, lost, advanced) in acks {
                let newly = newly.min(r.in_flight);
                let lost = lost.min(r.in_flight - newly);
                r.in_flight -= newly + lost;
                let ack = Ack {
                    delivered: newly,
                    lost,
                    advanced,
                };
                let Some(step) = r.step(ack) else { continue };
                let cwnd = Floor::Held.apply(step.cwnd);
                prop_assert!(
                    cwnd >= 2 && cwnd <= prior.max(2),
                    "cwnd {} in {:?}",
                    cwnd,
                    r
                );
                r.delivered = step.delivered;
                let may = cwnd.saturating_sub(r.in_flight);
                r.out += may;
                r.in_flight += may;
            }
            Ok(())
        },
    );
}
