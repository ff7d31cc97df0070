// SPDX-License-Identifier: GPL-2.0

//! Two runs side by side: which figures are not the same by more than noise allows.
//!
//! Virtual time gives the same records to the bit from the same image, so there any difference
//! is a change. From other images it is noise as far as the records themselves show some: a
//! scenario that runs its control twice (`dctcp` and `dctcp-again`) says by how much equal
//! things differ there. A scenario that does not is held to the bit, and the table says so.

use std::fmt::Write;
use std::path::Path;

use crate::records::{Scenario, files, load};

/// What the second run of a control is called after the first.
const AGAIN: &str = "-again";

/// All numbers of a scenario, with their place: flow, variant, metric.
fn numbers(scenario: &Scenario) -> impl Iterator<Item = ([&str; 3], f64)> {
    scenario.flows.iter().flat_map(|flow| {
        flow.cells.iter().flat_map(move |cell| {
            cell.metrics
                .iter()
                .map(move |m| ([&*flow.name, &*cell.variant, &*m.name], m.value))
        })
    })
}

fn find(scenario: &Scenario, place: [&str; 3]) -> Option<f64> {
    numbers(scenario).find(|n| n.0 == place).map(|n| n.1)
}

/// How far apart two figures are, as a part of the first.
fn apart(a: f64, b: f64) -> f64 {
    match (a - b).abs() {
        0.0 => 0.0,
        difference => difference / a.abs(),
    }
}

/// The largest difference of `metric` between a control and its second run.
fn noise(scenarios: [&Scenario; 2], metric: &str) -> Option<f64> {
    let mut most = None::<f64>;
    for scenario in scenarios {
        for ([flow, variant, name], again) in numbers(scenario) {
            let Some(control) = variant.strip_suffix(AGAIN).filter(|_| name == metric) else {
                continue;
            };
            if let Some(first) = find(scenario, [flow, control, name]) {
                let apart = apart(first, again);
                most = Some(most.map_or(apart, |m| m.max(apart)));
            }
        }
    }
    most
}

/// Kernel, emulator and the images' hashes of a scenario's run, if they are on record.
fn ran_on(folder: &Path, name: &str) -> Option<String> {
    std::fs::read_to_string(folder.join(format!("vtime/{name}.run"))).ok()
}

/// One scenario in both runs: its lines of the table, and how many figures changed.
pub(crate) fn scenario(out: &mut String, a: &Scenario, b: &Scenario, same_image: bool) -> usize {
    let (mut changed, mut within, mut equal) = (0, 0, 0);
    let mut rows = String::new();
    for (place, old) in numbers(a) {
        let Some(new) = find(b, place) else {
            changed += 1;
            _ = writeln!(
                rows,
                "  {:<58} {old:>14} {:>14}",
                place.join(" "),
                "missing"
            );
            continue;
        };
        if old == new {
            equal += 1;
            continue;
        }
        let noise = noise([a, b], place[2]).filter(|_| !same_image);
        if noise.is_some_and(|noise| apart(old, new) <= noise) {
            within += 1;
            continue;
        }
        changed += 1;
        _ = write!(
            rows,
            "  {:<58} {old:>14} {new:>14} {:>+9.2} %",
            place.join(" "),
            (new - old) / old.abs() * 100.0
        );
        match noise {
            Some(noise) => _ = writeln!(rows, " (noise {:.2} %)", noise * 100.0),
            None => rows.push('\n'),
        }
    }
    for (place, new) in numbers(b).filter(|n| find(a, n.0).is_none()) {
        changed += 1;
        _ = writeln!(
            rows,
            "  {:<58} {:>14} {new:>14}",
            place.join(" "),
            "missing"
        );
    }
    let rule = match (same_image, numbers(a).any(|n| n.0[1].ends_with(AGAIN))) {
        (true, _) => "same image: to the bit",
        (false, true) => "other or unknown image: noise is what its control's two runs differ by",
        (false, false) => {
            "other or unknown image, control run once: no noise on record, to the bit"
        }
    };
    _ = writeln!(
        out,
        "{}: {changed} changed, {within} within noise, {equal} equal ({rule})\n{rows}",
        a.name
    );
    changed
}

/// The table of two folders, and whether anything changed.
pub fn compare(a: &Path, b: &Path) -> Result<(String, bool), String> {
    let read = |folder: &Path| match folder.is_dir() {
        true => load(&files(&[folder.into()])?),
        false => Err(format!(
            "{}: no folder of records: name an out/ folder that 'make run' filled",
            folder.display()
        )),
    };
    let (olds, news) = (read(a)?, read(b)?);
    let mut out = format!("A: {}\nB: {}\n\n", a.display(), b.display());
    let (mut changed, mut both) = (0, 0);
    for old in &olds {
        match news.iter().find(|new| new.name == old.name) {
            Some(new) => {
                both += 1;
                let image = ran_on(a, &old.name);
                let same_image = image.is_some() && image == ran_on(b, &old.name);
                changed += scenario(&mut out, old, new, same_image);
            }
            None => _ = writeln!(out, "{}: only in A, not compared\n", old.name),
        }
    }
    for new in &news {
        if !olds.iter().any(|old| old.name == new.name) {
            _ = writeln!(out, "{}: only in B, not compared\n", new.name);
        }
    }
    match both {
        0 => Err("the two folders have no scenario in common: run the same one in both".into()),
        _ => Ok((out, changed > 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests::from_text;

    fn run(stock: f64, again: f64, ours: f64) -> Scenario {
        let line = |variant: &str, value: f64| {
            format!(
                r#"{{"scenario":"ack","variant":"{variant}","flow":"bulk","metric":"own","unit":"count","value":{value}}}"#
            )
        };
        let text = line("dctcp", stock) + &line("dctcp-again", again) + &line("ours", ours);
        from_text(&text).remove(0)
    }

    #[test]
    fn one_image_allows_no_difference_another_the_controls_own() {
        let (a, near) = (run(100.0, 102.0, 50.0), run(100.0, 102.0, 50.9));
        let count = |b: &Scenario, same| scenario(&mut String::new(), &a, b, same);
        assert_eq!((count(&a, true), count(&near, true)), (0, 1));
        assert_eq!(count(&near, false), 0);
        assert_eq!(count(&run(100.0, 102.0, 51.1), false), 1);
    }

    #[test]
    fn what_is_missing_or_was_zero_is_a_change() {
        let (a, mut b) = (run(0.0, 0.0, 1.0), run(0.0, 0.0, 1.0));
        b.flows[0].cells.pop();
        assert_eq!(scenario(&mut String::new(), &a, &b, true), 1);
        assert_eq!(scenario(&mut String::new(), &b, &a, false), 1);
        assert_eq!(
            scenario(&mut String::new(), &a, &run(1.0, 1.0, 1.0), false),
            2
        );
    }
}
