// SPDX-License-Identifier: GPL-2.0

//! The plot of a scenario: a panel a flow, in it a tail curve a variant, or bars of throughput.
//!
//! A tail curve has latency over percentile, both on log scales: equal steps to the right are
//! p90, p99, p99.9, …, so that the tail gets as much room as the rest.

use crate::format::{throughput, time, wrap};
use crate::records::{Flow, Scenario};
use crate::svg::{Anchor, Svg};

/// The percentiles and where they are: the number of nines, log10(1/(1−q)).
const POINTS: [(&str, f64); 7] = [
    ("p50", 0.301),
    ("p75", 0.602),
    ("p90", 1.0),
    ("p99", 2.0),
    ("p99.9", 3.0),
    ("p99.99", 4.0),
    ("p99.999", 5.0),
];

/// Where the maximum is, on the same scale.
const MAX: f64 = 5.6;

/// After Okabe and Ito, the light ones darker, 3:1 on white at least; the control is grey.
const COLOURS: [&str; 8] = [
    "#555555", "#0072b2", "#d55e00", "#00805d", "#b35088", "#a06a00", "#2a7fb0", "#8b5a2b",
];

/// Dashes, so that colour is not all that tells curves apart.
const DASHES: [&str; 8] = [
    "none",
    "8 3",
    "2 3",
    "10 3 2 3",
    "5 5",
    "12 4",
    "2 6",
    "10 3 2 3 2 3",
];

/// Text and axes.
pub const INK: &str = "#222222";
/// Lines behind the figures.
pub const GRID: &str = "#e2e2e2";
const ALARM: &str = "#b00020";

const WIDTH: f64 = 900.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 650.0;
const TIMES_HEIGHT: f64 = 300.0;
const BAR: f64 = 26.0;

/// A panel's height, its title and scale included.
fn height(flow: &Flow) -> f64 {
    match flow.has_times() {
        true => TIMES_HEIGHT + 80.0,
        false => flow.cells.len() as f64 * BAR + 50.0,
    }
}

/// The drawing, or nothing for a scenario that measured neither times nor throughput.
pub fn plot(scenario: &Scenario) -> Option<String> {
    let flows = scenario.flows.iter();
    let flows: Vec<&Flow> = flows
        .filter(|f| f.has_times() || bars(f).next().is_some())
        .collect();
    if flows.is_empty() {
        return None;
    }
    let meaning = wrap(&scenario.meaning.join(" "), 125, 0);
    let void: Vec<String> = scenario.void.iter().map(|v| format!("void: {v}")).collect();
    let head = 40.0 + 16.0 * (meaning.lines().count() + void.len()) as f64;
    let mut svg = Svg::new(WIDTH, head + flows.iter().map(|f| height(f)).sum::<f64>());
    svg.text((12.0, 26.0), 18.0, INK, Anchor::Start, &scenario.name);
    let mut y = 46.0;
    for (line, colour) in meaning
        .lines()
        .map(|l| (l, INK))
        .chain(void.iter().map(|v| (&**v, ALARM)))
    {
        svg.text((12.0, y), 12.0, colour, Anchor::Start, line);
        y += 16.0;
    }
    let mut top = head;
    for flow in flows {
        match flow.has_times() {
            true => tail(&mut svg, scenario, flow, top),
            false => rates(&mut svg, scenario, flow, top),
        }
        top += height(flow);
    }
    let what = format!("{}: latency by percentile, or throughput", scenario.name);
    let table =
        "Percentiles on a 1-p axis, both axes logarithmic; the same figures are in the table.";
    Some(svg.finish(&what, &format!("{} {table}", scenario.meaning.join(" "))))
}

/// The colour and the dash of a variant, the same in all panels.
pub fn mark(scenario: &Scenario, variant: &str) -> (&'static str, &'static str) {
    let mut variants: Vec<&str> = Vec::new();
    for cell in scenario.flows.iter().flat_map(|f| &f.cells) {
        if !variants.contains(&&*cell.variant) {
            variants.push(&cell.variant);
        }
    }
    let at = variants.iter().position(|v| *v == variant).unwrap_or(0);
    (COLOURS[at % COLOURS.len()], DASHES[at % DASHES.len()])
}

/// The powers of ten (µs) around all times of a flow.
fn decades(flow: &Flow) -> (i32, i32) {
    let names = POINTS.iter().map(|(name, _)| *name).chain(["max"]);
    let times = names.flat_map(|name| flow.cells.iter().filter_map(move |c| c.get(name)));
    let logs: Vec<f64> = times.map(|us| us.max(0.001).log10()).collect();
    let low = logs.iter().copied().fold(f64::INFINITY, f64::min).floor() as i32;
    let high = logs
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max)
        .ceil() as i32;
    (low, high.max(low + 1))
}

/// A panel of tail curves.
fn tail(svg: &mut Svg, scenario: &Scenario, flow: &Flow, top: f64) {
    let (low, high) = decades(flow);
    let (top, bottom) = (top + 34.0, top + 34.0 + TIMES_HEIGHT);
    let x = |nines: f64| LEFT + (RIGHT - LEFT) * nines / 5.8;
    let y = |us: f64| {
        let part = (us.max(0.001).log10() - f64::from(low)) / f64::from(high - low);
        bottom - (bottom - top) * part
    };
    let title = format!("{}: latency from the intended send time", flow.name);
    svg.text((LEFT, top - 12.0), 13.0, INK, Anchor::Start, &title);
    for decade in low..=high {
        for step in 1..10 {
            let us = f64::from(step) * 10f64.powi(decade);
            if decade < high || step == 1 {
                svg.line(
                    (LEFT, y(us)),
                    (RIGHT, y(us)),
                    GRID,
                    if step == 1 { 1.5 } else { 0.5 },
                );
            }
        }
        let us = 10f64.powi(decade);
        svg.text((LEFT - 8.0, y(us) + 4.0), 11.0, INK, Anchor::End, &tick(us));
    }
    for (name, nines) in POINTS.into_iter().chain([("max", MAX)]) {
        svg.line((x(nines), top), (x(nines), bottom), GRID, 1.0);
        svg.text((x(nines), bottom + 16.0), 11.0, INK, Anchor::Middle, name);
    }
    svg.line((LEFT, bottom), (RIGHT, bottom), INK, 1.0);
    for (i, cell) in flow.cells.iter().enumerate() {
        let (colour, dash) = mark(scenario, &cell.variant);
        let known = POINTS
            .iter()
            .filter_map(|(name, nines)| Some((x(*nines), y(cell.get(name)?))));
        let points: Vec<(f64, f64)> = known.collect();
        if points.is_empty() {
            continue;
        }
        svg.polyline(&points, colour, 2.0, dash);
        points.iter().for_each(|p| svg.dot(*p, 2.5, colour));
        let key = (RIGHT + 20.0, top + 14.0 + 20.0 * i as f64);
        let sample = [(key.0, key.1 - 4.0), (key.0 + 30.0, key.1 - 4.0)];
        svg.polyline(&sample, colour, 3.0, dash);
        let mut label = cell.variant.clone();
        if let Some(max) = cell.get("max") {
            svg.dot((x(MAX), y(max)), 4.0, colour);
            label += &format!(", max {}", time(max));
        }
        svg.text((key.0 + 36.0, key.1), 12.0, INK, Anchor::Start, &label);
    }
}

/// A power of ten in µs as its scale has it: `100 µs`.
fn tick(us: f64) -> String {
    time(us).replace(".00", "").replace(".0", "")
}

/// A flow's throughputs.
fn bars(flow: &Flow) -> impl Iterator<Item = (&str, f64)> {
    flow.cells
        .iter()
        .filter_map(|c| Some((&*c.variant, c.get("throughput")?)))
}

/// A panel of throughput bars, from 0.
fn rates(svg: &mut Svg, scenario: &Scenario, flow: &Flow, top: f64) {
    let most = bars(flow)
        .map(|(_, mbit)| mbit)
        .fold(f64::MIN_POSITIVE, f64::max);
    let from = LEFT + 80.0;
    svg.text(
        (LEFT, top + 22.0),
        13.0,
        INK,
        Anchor::Start,
        &format!("{}: throughput", flow.name),
    );
    for (i, (variant, mbit)) in bars(flow).enumerate() {
        let y = top + 34.0 + BAR * i as f64;
        let width = (RIGHT - from) * mbit / most;
        let (colour, _) = mark(scenario, variant);
        svg.text((from - 8.0, y + 15.0), 12.0, INK, Anchor::End, variant);
        svg.bar((from, y), (width, BAR - 6.0), colour);
        svg.text(
            (from + width + 8.0, y + 15.0),
            12.0,
            INK,
            Anchor::Start,
            &throughput(mbit),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests::from_text;

    fn record(flow: &str, variant: &str, metric: &str, unit: &str, value: f64) -> String {
        format!(
            r#"{{"scenario":"T0","variant":"{variant}","flow":"{flow}","metric":"{metric}","unit":"{unit}","value":{value}}}"#
        )
    }

    #[test]
    fn a_curve_a_variant_and_bars_for_streams() {
        let mut text = String::new();
        for (variant, scale) in [("stock", 2.0), ("nodelay", 1.0)] {
            for (i, (name, _)) in POINTS.iter().enumerate() {
                text += &record("rpc", variant, name, "us", scale * 10f64.powi(i as i32));
            }
            text += &record("rpc", variant, "max", "us", scale * 1e7);
            text += &record("stream", variant, "throughput", "Mbit/s", 100.0 * scale);
        }
        let scenarios = from_text(&text);
        let svg = plot(&scenarios[0]).unwrap();
        assert_eq!(svg.matches("<polyline").count(), 2 + 2);
        assert_eq!(svg.matches("<rect").count(), 1 + 2);
        assert!(
            svg.contains(">stock, max 20.0 s</text>") && svg.contains(">200 Mbit/s</text>"),
            "{svg}"
        );
        assert_eq!(svg, plot(&scenarios[0]).unwrap());
        // Twice the latency is the same distance everywhere.
        assert_eq!(decades(&scenarios[0].flows[0]), (0, 8));
    }

    #[test]
    fn counters_alone_are_no_plot() {
        assert!(plot(&from_text(&record("rpc", "stock", "rto", "count", 1.0))[0]).is_none());
    }
}
