// SPDX-License-Identifier: GPL-2.0

//! HdrHistogram's own text form, which its plotters read: `.hgrm`, values in µs.

use std::fmt::Write;

use crate::stats::Times;

/// Steps per half distance to 100 %, as wrk2 and HdrHistogram's tools use.
const TICKS: u32 = 5;

/// The histogram as a `.hgrm` file.
pub fn hgrm(times: &Times) -> String {
    let mut out = String::new();
    let us = |ns: u64| ns as f64 / 1_000.0;
    _ = writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut total = 0;
    for step in times.histogram().iter_quantiles(TICKS) {
        total += step.count_since_last_iteration();
        let (value, at) = (
            us(step.value_iterated_to().min(times.max())),
            step.quantile_iterated_to(),
        );
        if at < 1.0 {
            _ = writeln!(
                out,
                "{value:>12.3} {at:>2.12} {total:>10} {:>14.2}",
                1.0 / (1.0 - at)
            );
        } else {
            _ = writeln!(out, "{value:>12.3} {at:>2.12} {total:>10}");
        }
    }
    let h = times.histogram();
    _ = writeln!(
        out,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]",
        h.mean() / 1e3,
        h.stdev() / 1e3
    );
    _ = writeln!(
        out,
        "#[Max     = {:>12.3}, Total count    = {:>12}]",
        us(times.max()),
        times.count()
    );
    _ = writeln!(
        out,
        "#[Buckets = {:>12}, SubBuckets     = {:>12}]",
        h.buckets(),
        2048
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_with_everything_counted() {
        let mut times = Times::default();
        (1..=1000u64).for_each(|n| times.record(n * 1000));
        let text = hgrm(&times);
        let last = text.lines().rfind(|l| !l.starts_with('#')).unwrap();
        let fields: Vec<&str> = last.split_whitespace().collect();
        assert_eq!(fields, ["1000.000", "1.000000000000", "1000"]);
        assert!(
            text.contains("#[Max     =     1000.000, Total count    =         1000]"),
            "{text}"
        );
    }
}
