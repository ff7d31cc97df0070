// SPDX-License-Identifier: GPL-2.0

//! Plans: what is read, what is refused, and which candidates are hit.

use std::{format, string::String, vec::Vec};

use crate::fault::plan::{MAX_DELAY_US, MAX_TEXT, Plan, Ports, When};

fn parse(text: &str) -> Option<Plan> {
    Plan::parse(text.as_bytes(), false)
}

fn text(plan: Plan) -> String {
    let mut text = String::new();
    plan.write(&mut text).unwrap();
    text
}

#[test]
fn plans_are_read_back() {
    for written in [
        "off",
        "every 1",
        "random 4294967295",
        "every 3 sport 65535",
        "every 3 sport 1 dport 65535 limit 4294967295",
    ] {
        assert_eq!(text(parse(written).unwrap()), written);
    }
    assert_eq!(
        parse("  every\t3   limit 2  dport 7 "),
        parse("every 3 dport 7 limit 2")
    );
}

/// A sysctl would cut it off, and "limit 99999" become "limit 9".
#[test]
fn plans_that_do_not_fit_into_a_sysctl_are_refused() {
    let plan = |n: u32| {
        let text = format!("random {n} sport 65535 dport 65535 limit 99999 delay {MAX_DELAY_US}");
        (text.len(), Plan::parse(text.as_bytes(), true).is_some())
    };
    assert_eq!(plan(100_000), (MAX_TEXT, true));
    assert_eq!(plan(1_000_000), (MAX_TEXT + 1, false));
}

#[test]
fn what_is_not_a_plan_is_refused() {
    for no in [
        "",
        " ",
        "on",
        "every",
        "every 0",
        "every -1",
        "every +1",
        "every 1.5",
        "every 4294967296",
        "off 1",
        "off every 1",
        "every 1 2",
        "every 1 dport",
        "every 1 dport 0",
        "every 1 dport 65536",
        "every 1 port 5",
        "every 1 delay 5",
        "EVERY 1",
        "every 1 \u{fc} 5",
    ] {
        assert_eq!(parse(no), None, "{no}");
    }
    assert_eq!(Plan::parse(b"every 1 \xff\xfe 5", false), None);
    assert_eq!(Plan::parse(b"every \xff", false), None);
}

#[test]
fn a_delay_is_required_where_the_fault_delays() {
    assert_eq!(Plan::parse(b"every 1", true), None);
    assert_eq!(Plan::parse(b"every 1 delay 200001", true), None);
    assert_eq!(Plan::parse(b"every 1 delay 5", true).unwrap().delay_us, 5);
    assert_eq!(Plan::parse(b"off", true), Some(Plan::OFF));
}

#[test]
fn ports_choose_connections() {
    let ports = |local, remote| Ports { local, remote };
    assert!(!Plan::OFF.covers(ports(1, 2)));
    assert!(parse("every 1").unwrap().covers(ports(1, 2)));
    let plan = parse("every 1 sport 1 dport 2").unwrap();
    assert!(plan.covers(ports(1, 2)));
    assert!(!plan.covers(ports(2, 1)));
    assert!(!plan.covers(ports(1, 3)));
}

fn hits(plan: &str, seed: u64, of: u64) -> Vec<u64> {
    let plan = parse(plan).unwrap();
    (0..of).filter(|&k| plan.hits(seed, k)).collect()
}

#[test]
fn every_hits_each_nth() {
    assert_eq!(hits("every 3", 1, 10), [2, 5, 8]);
    assert_eq!(hits("every 1", 9, 3), [0, 1, 2]);
    let never = Plan {
        when: When::Every(0),
        ..Plan::OFF
    };
    assert!(!never.hits(1, u64::MAX));
    assert!(parse("every 1").unwrap().hits(u64::MAX, u64::MAX));
}

/// Within five standard deviations of N·p, for each seed that the module uses.
#[test]
fn random_hits_one_in_n_and_the_same_again() {
    for n in [1, 2, 10, 1000] {
        for seed in 1..=5 {
            let plan = format!("random {n}");
            let seen = hits(&plan, seed, 100_000);
            assert_eq!(seen, hits(&plan, seed, 100_000));
            let mean = 100_000.0 / f64::from(n);
            let deviation = (mean * (1.0 - 1.0 / f64::from(n))).sqrt();
            let off = (seen.len() as f64 - mean).abs();
            assert!(
                off <= 5.0 * deviation,
                "{plan}, seed {seed}: {}",
                seen.len()
            );
        }
    }
    assert_ne!(hits("random 2", 1, 64), hits("random 2", 2, 64));
}

/// The published sequence of SplitMix64 for seed 1234567 begins with 6457827717110365317 and
/// 3203168211198807973: one in two asks for the top bit.
#[test]
fn the_generator_is_splitmix64() {
    let top = |x: u64| x >> 63 == 0;
    assert_eq!(
        parse("random 2").unwrap().hits(1_234_567, 0),
        top(6_457_827_717_110_365_317)
    );
    assert_eq!(
        parse("random 2").unwrap().hits(1_234_567, 1),
        top(3_203_168_211_198_807_973)
    );
}
