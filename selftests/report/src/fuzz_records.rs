// SPDX-License-Identifier: GPL-2.0

//! Whatever stands in a file of records: it is refused by the file's name, or can be shown.

use std::fs;
use std::path::{Path, PathBuf};

use fuzz::{check, corpus};
use proptest::{collection::vec, prelude::*};

use crate::records::{Scenario, load};
use crate::{compare, header, html, plot, sweep, table};

const CASES: u32 = 256;

/// Names as scenarios give them, and as nobody should.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "T0|T4|sweep|stock|dctcp|dctcp-again|rpc|10KB:N=8|10KB:N=16|-",
        2 => "p50|p90|p99|p99.9|p99.99|max|min|throughput|cwnd_min|autocork|meaning|note|void",
        1 => "\\PC{0,12}",
    ]
}

fn number() -> impl Strategy<Value = f64> {
    let edge = prop::sample::select(vec![
        0.0,
        -0.0,
        1e-9,
        999.95,
        1e9,
        f64::MAX,
        f64::MIN_POSITIVE,
    ]);
    prop_oneof![
        3 => 0.0..1e6f64,
        1 => (0u32..5).prop_map(f64::from),
        1 => edge,
        1 => any::<f64>().prop_filter("JSON has finite numbers only", |n| n.is_finite()),
    ]
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    prop_oneof![4 => number().prop_map(Into::into), 1 => "\\PC{0,20}".prop_map(Into::into)]
}

/// Records of few scenarios, flows and variants, so that they meet.
fn record() -> impl Strategy<Value = serde_json::Value> {
    let unit = "us|Mbit/s|count|text|";
    ("T0|T4|sweep|a b", name(), name(), name(), unit, value()).prop_map(
        |(scenario, variant, flow, metric, unit, value)| {
            serde_json::json!({"scenario": scenario, "variant": variant, "flow": flow,
                               "metric": metric, "unit": unit, "value": value})
        },
    )
}

/// A folder that is gone when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lowtail-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn load(&self, text: &str) -> Result<Vec<Scenario>, String> {
        let file = self.0.join("x.json");
        fs::write(&file, text).unwrap();
        load(&[file])
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// Everything that is made of records.
fn show(scenarios: &[Scenario]) -> String {
    let mut out = table::tables(scenarios);
    for scenario in scenarios {
        for drawing in [plot::plot(scenario), sweep::sweep(scenario)]
            .into_iter()
            .flatten()
        {
            out += &drawing;
        }
    }
    out + &html::page(scenarios, Path::new("."))
}

/// An array and lines say the same, every number is kept, the last one of its place, and all of it
/// can be shown, as the same page each time.
#[test]
fn fuzz_records() {
    let folder = Folder::new("fuzz-records");
    check(corpus!("records"), CASES, vec(record(), 1..40), |records| {
        let lines: Vec<String> = records.iter().map(ToString::to_string).collect();
        let scenarios = folder
            .load(&lines.join("\n"))
            .map_err(TestCaseError::fail)?;
        let array = folder
            .load(&format!("[{}]", lines.join(",")))
            .map_err(TestCaseError::fail)?;
        prop_assert_eq!(format!("{:?}", scenarios), format!("{:?}", array));

        for (n, record) in records.iter().enumerate() {
            let Some(number) = record["value"].as_f64() else {
                continue;
            };
            let place = |r: &serde_json::Value| {
                ["scenario", "flow", "variant", "metric"].map(|k| r[k].as_str().map(String::from))
            };
            let again = records[n + 1..]
                .iter()
                .any(|r| place(r) == place(record) && r["value"].is_number());
            let found = scenarios
                .iter()
                .filter(|s| record["scenario"] == *s.name)
                .flat_map(|s| &s.flows)
                .filter(|f| record["flow"] == *f.name)
                .flat_map(|f| &f.cells)
                .find(|c| record["variant"] == *c.variant)
                .and_then(|c| c.get(record["metric"].as_str()?));
            prop_assert!(again || found == Some(number), "{} of {}", number, record);
        }
        let page = show(&scenarios);
        prop_assert!(!page.contains("NaN"), "{}", page);
        Ok(())
    });
}

/// A run compared with itself differs in nothing, and with another in as much as that with it.
#[test]
fn fuzz_compare() {
    let folder = Folder::new("fuzz-compare");
    let runs = (vec(record(), 1..20), vec(record(), 1..20));
    check(corpus!("compare"), CASES, runs, |(a, b)| {
        let read = |records: &[serde_json::Value]| {
            let lines: Vec<String> = records.iter().map(ToString::to_string).collect();
            folder.load(&lines.join("\n")).map_err(TestCaseError::fail)
        };
        let (a, b) = (read(&a)?, read(&b)?);
        let changed =
            |a: &Scenario, b: &Scenario, same| compare::scenario(&mut String::new(), a, b, same);
        for one in &a {
            prop_assert_eq!(changed(one, one, true), 0);
            prop_assert_eq!(changed(one, one, false), 0);
            for other in b.iter().filter(|s| s.name == one.name) {
                prop_assert_eq!(changed(one, other, true), changed(other, one, true));
                prop_assert!(changed(one, other, false) <= changed(one, other, true));
            }
        }
        Ok(())
    });
}

/// Text that is no record is refused by the name of its file, and nothing panics.
#[test]
fn fuzz_records_text() {
    let folder = Folder::new("fuzz-text");
    let broken = (record(), any::<prop::sample::Index>(), "\\PC{0,2}").prop_map(|(r, at, put)| {
        let mut text: Vec<char> = r.to_string().chars().collect();
        let at = at.index(text.len());
        text.splice(at..=at, put.chars());
        text.into_iter().collect()
    });
    let text = prop_oneof![broken, "\\PC{0,40}", "[\\[\\]{}:,\"a-z0-9.e\\n-]{0,40}"];
    check(corpus!("records_text"), CASES, text, |text: String| {
        match folder.load(&text) {
            Ok(scenarios) => _ = show(&scenarios),
            Err(error) => prop_assert!(
                error.contains("x.json") || error.starts_with("the files hold no records"),
                "{}",
                error
            ),
        }
        Ok(())
    });
}

/// A scenario's header is any script's beginning.
#[test]
fn fuzz_header() {
    let line = prop_oneof![
        "#",
        "# T0: [a-z ]{0,9}",
        "# Public figures[ :a-z]{0,9}",
        "#  \\PC{0,9}",
        "\\PC{0,9}"
    ];
    check(corpus!("header"), CASES, vec(line, 0..12), |lines| {
        let script = lines.join("\n");
        let public = header::public(&script);
        prop_assert!(public.is_none() || script.contains("Public figures"));
        // Nothing is made up.
        let words = header::title(&script);
        prop_assert!(words.split_whitespace().all(|word| script.contains(word)));
        Ok(())
    });
}
