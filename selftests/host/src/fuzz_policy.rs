// SPDX-License-Identifier: GPL-2.0

//! rust/policy and the text of a sysctl: what an operator may write, and what a push may meet. The
//! module parameters are parsed by C (`param_set_uint_minmax()`, `param_set_bool()`).

use std::{fmt::Write, string::String, vec::Vec};

use ::fuzz::{check, corpus};
use proptest::{collection::vec, prelude::*};

use crate::policy::{Counter, NAGLE_CORK, NAGLE_OFF, Policy, Push, Splice, Verdict};
use crate::text::{MAX_LEN, Text, number};

const CASES: u32 = 8192;

/// Bytes as they might be written to a sysctl: digits and signs more often than chance has it.
fn written() -> impl Strategy<Value = Vec<u8>> {
    let like_a_number = vec(
        prop::sample::select(Vec::from(*b"0123456789+- x_\0\n")),
        0..14,
    );
    let decimal = any::<u64>().prop_map(|n| std::format!("{n}").into_bytes());
    prop_oneof![vec(any::<u8>(), 0..20), like_a_number, decimal]
}

#[test]
fn fuzz_number() {
    check(
        corpus!("number"),
        CASES,
        (written(), any::<u32>(), any::<u32>()),
        |(text, a, b)| {
            for range in [a..=b, 0..=2, 10..=40_000, 0..=u32::MAX] {
                let digits = text.strip_prefix(b"+").unwrap_or(&text);
                let is_decimal = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
                let value = digits.iter().fold(0u128, |n, d| {
                    n.saturating_mul(10)
                        .saturating_add(u128::from(d.wrapping_sub(b'0')))
                });
                let inside =
                    u128::from(*range.start()) <= value && value <= u128::from(*range.end());
                let expected = (is_decimal && inside).then_some(value);
                prop_assert_eq!(number(&text, range).map(u128::from), expected);
            }
            Ok(())
        },
    );
}

/// What is read back is what was written, up to 63 bytes; what C filled to the end is refused.
#[test]
fn fuzz_text() {
    let parts = vec(prop_oneof![any::<String>(), "[a-z ]{0,40}"], 0..6);
    check(
        corpus!("text"),
        CASES,
        (parts, written()),
        |(parts, by_c)| {
            let mut text = Text::new();
            for part in &parts {
                prop_assert!(text.write_str(part).is_ok());
            }
            let all = parts.concat().into_bytes();
            let kept = &all[..all.len().min(MAX_LEN - 1)];
            let said = kept.split(|b| *b == 0).next().unwrap_or_default();
            let expected = (said.len() < MAX_LEN - 1).then(|| said.trim_ascii());
            prop_assert_eq!(text.trimmed(), expected);
            prop_assert_eq!(text.bytes_mut().last(), Some(&0));

            // As proc_dostring() puts what was written in its place, with a NUL.
            text.bytes_mut()[..by_c.len()].copy_from_slice(&by_c);
            text.bytes_mut()[by_c.len()] = 0;
            let said = by_c.split(|b| *b == 0).next().unwrap_or_default();
            prop_assert_eq!(text.trimmed(), Some(said.trim_ascii()));
            Ok(())
        },
    );
}

#[test]
fn fuzz_policy_name() {
    let near = (0usize..4, 0usize..8, any::<u8>()).prop_map(|(which, at, byte)| {
        let mut name = Policy::ALL[which].name().as_bytes().to_vec();
        if let Some(slot) = name.get_mut(at) {
            *slot = byte;
        }
        name
    });
    check(
        corpus!("policy_name"),
        CASES,
        prop_oneof![written(), near],
        |text| {
            let meant: Vec<_> = Policy::ALL
                .into_iter()
                .filter(|p| p.name().as_bytes() == text)
                .collect();
            prop_assert_eq!(Policy::from_name(&text), meant.first().copied());
            prop_assert!(meant.len() <= 1);
            Ok(())
        },
    );
}

/// Numbers of settings are total, and their names and numbers go there and back.
#[test]
fn fuzz_index() {
    check(
        corpus!("index"),
        CASES,
        prop_oneof![0u32..8, any::<u32>()],
        |n| {
            let policy = Policy::from_index(n);
            prop_assert_eq!(policy as u32, if n < 4 { n } else { 0 });
            prop_assert_eq!(Policy::from_name(policy.name().as_bytes()), Some(policy));
            let splice = Splice::from_index(n);
            prop_assert_eq!(splice as u32, if n <= Splice::MAX { n } else { 0 });
            let index = n as usize % Counter::ALL.len();
            prop_assert_eq!(Counter::ALL[index].index(), index);
            Ok(())
        },
    );
}

/// Nobody who asked to wait is made not to, and nobody who asked not to wait is left waiting.
#[test]
fn fuzz_push() {
    let input = (
        0u32..4,
        any::<u8>(),
        any::<i32>(),
        any::<bool>(),
        any::<bool>(),
    );
    check(
        corpus!("push"),
        CASES,
        input,
        |(policy, nonagle, argument, more, spliced)| {
            let push = Push {
                nonagle,
                argument,
                more,
                spliced,
            };
            let (off, cork) = (nonagle & NAGLE_OFF != 0, nonagle & NAGLE_CORK != 0);
            let must_not_wait = (off || spliced) && !cork && !more;
            let verdict = Policy::from_index(policy).decide(push);
            match Policy::from_index(policy) {
                Policy::Stock => prop_assert_eq!(verdict, Verdict::LeftStock),
                Policy::NonAgle => prop_assert_eq!(verdict == Verdict::Covered, argument != 0),
                Policy::NoDelay => prop_assert_eq!(verdict == Verdict::Covered, must_not_wait),
                Policy::Bounded => {
                    prop_assert_eq!(verdict == Verdict::Bounded, must_not_wait);
                    prop_assert!(verdict != Verdict::Covered);
                }
            }
            prop_assert_eq!(push.turns_nagle_off(), spliced && must_not_wait && !off);
            Ok(())
        },
    );
}

/// Records that kTLS made are an end's own, and `loopback` means loopback.
#[test]
fn fuzz_splice() {
    let input = (0u32..3, any::<bool>(), any::<bool>());
    check(
        corpus!("splice"),
        CASES / 8,
        input,
        |(n, ktls, loopback)| {
            let covered = Splice::from_index(n).covers(|| ktls, || loopback);
            prop_assert_eq!(covered, !ktls && (n == 2 || n == 1 && loopback));
            Ok(())
        },
    );
}
