// SPDX-License-Identifier: GPL-2.0

//! Alpha and the windows that follow from it: RFC 8257 §3.3, C14, C15, C16; and the receiver's CE
//! state machine: §3.2, C10.

use proptest::prelude::*;

use crate::dctcp::{
    alpha::{MAX_ALPHA, MAX_SHIFT_G, Window, ssthresh_lost, ssthresh_marked},
    ce::{Reaction, on_segment},
};

fn window(delivered: u32, delivered_ce: u32) -> Window {
    Window {
        delivered,
        delivered_ce,
    }
}

#[test]
fn everything_marked_keeps_alpha_at_one() {
    assert_eq!(window(10, 10).next_alpha(MAX_ALPHA, 4), MAX_ALPHA);
}

#[test]
fn one_marked_window_of_a_clean_path() {
    // g = 1/16 of everything: 1024/16.
    assert_eq!(window(10, 10).next_alpha(0, 4), 64);
    assert_eq!(window(10, 5).next_alpha(0, 4), 32);
}

#[test]
fn known_windows() {
    assert_eq!(ssthresh_marked(10, MAX_ALPHA), 5);
    assert_eq!(ssthresh_marked(10, 0), 10);
    assert_eq!(ssthresh_marked(100, 512), 75);
    assert_eq!(ssthresh_marked(2, MAX_ALPHA), 2);
    // C15: loss halves, whatever was marked.
    assert_eq!(ssthresh_lost(10), 5);
    assert_eq!(ssthresh_lost(3), 2);
}

#[test]
fn plb_is_not_consulted_about_nothing() {
    assert_eq!(window(0, 0).ce_ratio(), None);
    assert_eq!(window(4, 1).ce_ratio(), Some(64));
}

/// C14: for every g, alpha goes back to 0 all the way once marks stop.
#[test]
fn alpha_decays_to_zero() {
    for shift_g in 0..=MAX_SHIFT_G {
        let mut alpha = MAX_ALPHA;
        let mut windows = 0;
        while alpha != 0 {
            let next = window(10, 0).next_alpha(alpha, shift_g);
            assert!(next < alpha, "g=1/2^{shift_g}: stuck at {alpha}");
            alpha = next;
            windows += 1;
        }
        assert!(windows <= 1024 * 12, "g=1/2^{shift_g}: {windows} windows");
    }
}

/// RFC 8257 figure 1, all eight cases; C10.
#[test]
fn ce_state_machine() {
    for was in [false, true] {
        for is in [false, true] {
            for delayed in [false, true] {
                assert_eq!(
                    on_segment(was, is, delayed),
                    Reaction {
                        ack_pending_with_old_state: was != is && delayed,
                        ack_now: was != is,
                        echo: is,
                    }
                );
            }
        }
    }
}

proptest! {
    /// Any counters, any alpha, any parameter: a fraction comes out and nothing panics.
    #[test]
    fn alpha_is_a_fraction(delivered: u32, ce: u32, alpha in 0..=MAX_ALPHA, shift_g: u32) {
        let w = window(delivered, ce);
        prop_assert!(w.next_alpha(alpha, shift_g) <= MAX_ALPHA);
        let _ = w.ce_ratio();
    }

    /// More marks never give a smaller alpha.
    #[test]
    fn alpha_is_monotonic(delivered in 1u32..100_000, a in 0u32..100_000, b in 0u32..100_000,
                          alpha in 0..=MAX_ALPHA, shift_g in 0..=MAX_SHIFT_G) {
        let (less, more) = (a.min(b).min(delivered), a.max(b).min(delivered));
        prop_assert!(window(delivered, less).next_alpha(alpha, shift_g)
                     <= window(delivered, more).next_alpha(alpha, shift_g));
    }

    /// The window is cut by at most half, never below 2 packets, never raised above what it was
    /// (but for the 2).
    #[test]
    fn the_cut_is_bounded(cwnd in 1u32..1 << 21, alpha in 0..=MAX_ALPHA) {
        let after = ssthresh_marked(cwnd, alpha);
        prop_assert!(after >= 2);
        prop_assert!(after <= cwnd.max(2));
        prop_assert!(after >= cwnd / 2);
    }

    /// Whatever the window, nothing panics.
    #[test]
    fn no_window_panics(cwnd: u32, alpha: u32) {
        let _ = (ssthresh_marked(cwnd, alpha), ssthresh_lost(cwnd));
    }
}
