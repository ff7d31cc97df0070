// SPDX-License-Identifier: GPL-2.0

//! What a scenario measured for several numbers of connections: a panel a metric, a line a variant.
//!
//! Its flows are called `NAME:N`. N is on a logarithmic axis, as it doubles or more each time.

use crate::format::{count, time};
use crate::plot::{GRID, INK, mark};
use crate::records::{Cell, Scenario};
use crate::svg::{Anchor, Svg};

/// The panels: metrics of which the first that is there is shown, title, and whether it is a time.
const PANELS: [(&[&str], &str, bool); 3] = [
    (&["queue_mean"], "queue before a packet, mean (kB)", false),
    (&["drop_share", "dropped"], "dropped", false),
    (&["p99"], "completion time, p99", true),
];

const WIDTH: f64 = 900.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 650.0;
const HEIGHT: f64 = 150.0;
const STEP: f64 = HEIGHT + 66.0;

/// One variant's figures over N.
struct Line<'a> {
    variant: &'a str,
    points: Vec<(f64, f64)>,
}

/// The number of connections in a flow's name.
fn connections(flow: &str) -> Option<f64> {
    let n: u32 = flow.split_once(':')?.1.parse().ok()?;
    (n > 0).then_some(f64::from(n))
}

/// The lines of a metric, in the order in which variants first appear.
fn lines<'a>(scenario: &'a Scenario, metric: &str) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    let points = scenario.flows.iter().filter_map(|flow| {
        let n = connections(&flow.name)?;
        Some(flow.cells.iter().map(move |cell: &Cell| (n, cell)))
    });
    for (n, cell) in points.flatten() {
        let Some(value) = cell.get(metric) else {
            continue;
        };
        match lines.iter_mut().find(|l| l.variant == cell.variant) {
            Some(line) => line.points.push((n, value)),
            None => lines.push(Line {
                variant: &cell.variant,
                points: vec![(n, value)],
            }),
        }
    }
    lines
}

/// The drawing, or nothing for a scenario with fewer than two numbers of connections.
pub fn sweep(scenario: &Scenario) -> Option<String> {
    let mut ns: Vec<f64> = scenario
        .flows
        .iter()
        .filter_map(|f| connections(&f.name))
        .collect();
    ns.sort_by(f64::total_cmp);
    ns.dedup();
    let (least, most) = (*ns.first()?, *ns.last()?);
    if ns.len() < 2 {
        return None;
    }
    let mut panels = Vec::new();
    for (metrics, title, is_time) in PANELS {
        let found = metrics.iter().map(|m| (*m, lines(scenario, m)));
        if let Some((metric, lines)) = found.into_iter().find(|(_, lines)| !lines.is_empty()) {
            let unit = if metric == "drop_share" {
                " (% of packets)"
            } else {
                ""
            };
            panels.push((format!("{title}{unit}"), is_time, lines));
        }
    }
    let mut svg = Svg::new(WIDTH, STEP * panels.len() as f64 + 10.0);
    let x = |n: f64| LEFT + (RIGHT - LEFT) * (n / least).ln() / (most / least).ln();
    for (i, (title, is_time, lines)) in panels.iter().enumerate() {
        let top = STEP * i as f64 + 34.0;
        let bottom = top + HEIGHT;
        let values = lines.iter().flat_map(|l| &l.points).map(|p| p.1);
        let high = values.fold(f64::MIN_POSITIVE, f64::max);
        svg.text((LEFT, top - 12.0), 13.0, INK, Anchor::Start, title);
        for part in [0.0, 0.5, 1.0] {
            let (y, value) = (bottom - HEIGHT * part, high * part);
            let text = match is_time {
                true if part > 0.0 => time(value),
                _ => count(value),
            };
            svg.line((LEFT, y), (RIGHT, y), GRID, 1.0);
            svg.text((LEFT - 8.0, y + 4.0), 11.0, INK, Anchor::End, &text);
        }
        for n in &ns {
            let text = format!("N={n}");
            svg.text((x(*n), bottom + 16.0), 11.0, INK, Anchor::Middle, &text);
        }
        for (k, line) in lines.iter().enumerate() {
            let (colour, dash) = mark(scenario, line.variant);
            let points: Vec<(f64, f64)> = line
                .points
                .iter()
                .map(|(n, value)| (x(*n), bottom - HEIGHT * value / high))
                .collect();
            svg.polyline(&points, colour, 2.0, dash);
            points.iter().for_each(|p| svg.dot(*p, 2.5, colour));
            let y = top + 14.0 + 20.0 * k as f64;
            let sample = [(RIGHT + 20.0, y - 4.0), (RIGHT + 50.0, y - 4.0)];
            svg.polyline(&sample, colour, 3.0, dash);
            svg.text((RIGHT + 56.0, y), 12.0, INK, Anchor::Start, line.variant);
        }
    }
    let title = format!("{}: by the number of connections N", scenario.name);
    (!panels.is_empty()).then(|| {
        svg.finish(
            &title,
            "N on a logarithmic axis, the figures from 0; they are in the table.",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests::from_text;

    fn record(flow: &str, variant: &str, metric: &str, value: u32) -> String {
        format!(
            r#"{{"scenario":"sweep","variant":"{variant}","flow":"{flow}","metric":"{metric}","unit":"us","value":{value}}}"#
        )
    }

    #[test]
    fn a_line_a_variant_in_each_panel_that_has_figures() {
        let mut text = String::new();
        for n in [1, 4, 48] {
            for variant in ["dctcp", "ours<"] {
                text += &record(&format!("incast:{n}"), variant, "p99", n * 1000);
                text += &record(&format!("incast:{n}"), variant, "dropped", n - 1);
            }
        }
        let svg = sweep(&from_text(&text)[0]).unwrap();
        assert_eq!(svg.matches("<polyline").count(), 2 * 2 * 2);
        assert!(svg.contains(">48.0 ms<") && svg.contains(">N=48<") && svg.contains("ours&lt;"));
        assert!(!svg.contains("queue"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn one_number_or_none_is_no_sweep() {
        let one = record("incast:4", "v", "p99", 1) + &record("1MB:stands", "v", "p99", 1);
        assert!(sweep(&from_text(&one)[0]).is_none());
        assert_eq!(connections("rpc:64+64"), None);
        assert_eq!(connections("x:0"), None);
    }
}
