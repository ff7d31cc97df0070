// SPDX-License-Identifier: GPL-2.0

//! Congestion windows over time: a panel a flow, a line a variant, and the floor.
//!
//! A flow is called `NAME:REGIME`; each regime has a drawing and a table of its own. The window's axis is
//! logarithmic, so that 1 and 2 packets are as far apart as 32 and 64.

use std::fmt::Write;

use crate::plot::{GRID, INK, mark};
use crate::records::{Cell, Flow, Scenario};
use crate::svg::{Anchor, Svg, escape};

/// `dctcp_floor`'s floor (packets).
const FLOOR: f64 = 2.0;
const ALARM: &str = "#b00020";

const WIDTH: f64 = 900.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 690.0;
const HEIGHT: f64 = 110.0;
const STEP: f64 = HEIGHT + 46.0;

/// Periods that the table divides the time into.
const PERIODS: usize = 20;

/// The regimes that have windows, in the order in which they first appear.
pub fn regimes(scenario: &Scenario) -> Vec<&str> {
    let mut found = Vec::new();
    for flow in scenario.flows.iter().filter(|f| has_windows(f)) {
        let regime = split(flow).1;
        if !found.contains(&regime) {
            found.push(regime);
        }
    }
    found
}

fn has_windows(flow: &Flow) -> bool {
    flow.cells.iter().any(|c| !c.windows.is_empty())
}

/// Name and regime.
fn split(flow: &Flow) -> (&str, &str) {
    flow.name.split_once(':').unwrap_or((&flow.name, ""))
}

/// The flows of a regime that have windows.
fn flows<'a>(scenario: &'a Scenario, regime: &str) -> Vec<&'a Flow> {
    let flows = scenario.flows.iter();
    flows
        .filter(|f| has_windows(f) && split(f).1 == regime)
        .collect()
}

/// The end of time (µs) and the largest window (packets).
fn extent(flows: &[&Flow]) -> (f64, f64) {
    let points = flows.iter().flat_map(|f| &f.cells).flat_map(|c| &c.windows);
    points.fold((1.0, FLOOR), |(end, most), (at, window)| {
        (at.max(end), window.max(most))
    })
}

/// The drawing of a regime.
pub fn drawing(scenario: &Scenario, regime: &str) -> String {
    let flows = flows(scenario, regime);
    let (end, most) = extent(&flows);
    // Half a step below 1, so that a window of 1 is a line and not the frame.
    let (low, high) = (-0.5, most.log2().ceil());
    let mut svg = Svg::new(WIDTH, STEP * flows.len() as f64 + 20.0);
    for (i, flow) in flows.iter().enumerate() {
        let top = STEP * i as f64 + 26.0;
        let bottom = top + HEIGHT;
        let x = |us: f64| LEFT + (RIGHT - LEFT) * us / end;
        let y = |window: f64| bottom - HEIGHT * (window.max(0.5).log2() - low) / (high - low);
        let title = format!("{}: congestion window (packets)", split(flow).0);
        svg.text((LEFT, top - 8.0), 13.0, INK, Anchor::Start, &title);
        for power in 0..=high as i32 {
            let window = f64::from(power).exp2();
            svg.line((LEFT, y(window)), (RIGHT, y(window)), GRID, 1.0);
            if HEIGHT / (high - low) > 11.0 || power % 2 == 0 || window == FLOOR {
                let text = format!("{window}");
                svg.text((LEFT - 8.0, y(window) + 4.0), 11.0, INK, Anchor::End, &text);
            }
        }
        for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let text = format!("{:.0} ms", end * part / 1000.0);
            let at = x(end * part);
            svg.text((at, bottom + 14.0), 11.0, INK, Anchor::Middle, &text);
        }
        svg.line((LEFT, bottom), (RIGHT, bottom), INK, 1.0);
        svg.line((LEFT, y(FLOOR)), (RIGHT, y(FLOOR)), ALARM, 1.0);
        let cells = flow.cells.iter().filter(|c| !c.windows.is_empty());
        for (k, cell) in cells.enumerate() {
            let (colour, dash) = mark(scenario, &cell.variant);
            let mut steps: Vec<(f64, f64)> = Vec::new();
            for (at, window) in &cell.windows {
                if let Some((_, before)) = steps.last().copied() {
                    steps.push((x(*at), before));
                }
                steps.push((x(*at), y(*window)));
            }
            svg.polyline(&steps, colour, 1.5, "none");
            let key = top + 10.0 + 18.0 * k as f64;
            let sample = [(RIGHT + 16.0, key - 4.0), (RIGHT + 40.0, key - 4.0)];
            svg.polyline(&sample, colour, 3.0, "none");
            // By colour alone a line is not to be told: where one is lowest, a mark of its own.
            let least = cell.windows.iter().copied().reduce(|a, b| match b.1 < a.1 {
                true => b,
                false => a,
            });
            let (at, window) = least.unwrap_or((0.0, FLOOR));
            svg.polyline(
                &[(x(at), y(window) - 6.0), (x(at), y(window) + 6.0)],
                colour,
                3.0,
                dash,
            );
            let text = format!("{}, min {window}", cell.variant);
            svg.text((RIGHT + 46.0, key), 12.0, INK, Anchor::Start, &text);
        }
        let key = top + HEIGHT - 4.0;
        svg.line(
            (RIGHT + 16.0, key - 4.0),
            (RIGHT + 40.0, key - 4.0),
            ALARM,
            1.0,
        );
        let text = format!("floor: {FLOOR}");
        svg.text((RIGHT + 46.0, key), 12.0, INK, Anchor::Start, &text);
    }
    svg.finish(
        &format!("{}, {regime}: congestion windows over time", scenario.name),
        "Time on a linear axis, packets on a logarithmic one; the floor of 2 is marked. The same windows, least and \
         greatest in each period, are in the table.",
    )
}

/// The least and the greatest window in each period: what was there when it began counts.
fn periods(cell: &Cell, end: f64) -> Vec<Option<(f64, f64)>> {
    let mut found: Vec<Option<(f64, f64)>> = vec![None; PERIODS];
    let mut held = None;
    let mut points = cell.windows.iter().peekable();
    for (i, period) in found.iter_mut().enumerate() {
        let until = end * (i + 1) as f64 / PERIODS as f64;
        let mut see = |window: f64| {
            let (least, most) = period.unwrap_or((window, window));
            *period = Some((least.min(window), most.max(window)));
        };
        held.into_iter().for_each(&mut see);
        // The last period has its end, too.
        while let Some((_, window)) = points.next_if(|p| p.0 < until || i + 1 == PERIODS) {
            see(*window);
            held = Some(*window);
        }
    }
    found
}

/// The same as a table.
pub fn table(scenario: &Scenario, regime: &str) -> String {
    let flows = flows(scenario, regime);
    let (end, _) = extent(&flows);
    let name = escape(&format!("{}, {regime}", scenario.name));
    let mut out = format!(
        "<table>\n<caption>{name}: least–greatest congestion window (packets) in each period, which is named by its \
         end</caption>\n<thead><tr><th scope=\"col\">flow</th><th scope=\"col\">variant</th>"
    );
    for i in 1..=PERIODS {
        let until = end * i as f64 / PERIODS as f64 / 1000.0;
        _ = write!(out, "<th scope=\"col\">{until:.0} ms</th>");
    }
    out += "</tr></thead>\n<tbody>\n";
    for flow in flows {
        for cell in flow.cells.iter().filter(|c| !c.windows.is_empty()) {
            _ = write!(
                out,
                "<tr><th scope=\"row\">{}</th><td>{}</td>",
                escape(split(flow).0),
                escape(&cell.variant)
            );
            for period in periods(cell, end) {
                let text = match period {
                    Some((least, most)) if least == most => format!("{least}"),
                    Some((least, most)) => format!("{least}–{most}"),
                    None => "–".into(),
                };
                _ = write!(out, "<td>{text}</td>");
            }
            out += "</tr>\n";
        }
    }
    out + "</tbody>\n</table>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests::from_text;

    fn records() -> Scenario {
        let mut text = String::new();
        for (variant, points) in [
            ("dctcp", "0:10 90000:1 400000:3"),
            ("ours<", "5000:4 100000:2"),
        ] {
            text += &format!(
                r#"{{"scenario":"T4-cwnd","variant":"{variant}","flow":"10KB-s1:stands","metric":"cwnd_over_time","unit":"us:packets","value":"{points}"}}"#
            );
        }
        from_text(&text).remove(0)
    }

    #[test]
    fn a_step_line_a_variant_and_the_floor() {
        let scenario = records();
        assert_eq!(regimes(&scenario), ["stands"]);
        let svg = drawing(&scenario, "stands");
        // A line, its key and the mark of its least for each.
        assert_eq!(svg.matches("<polyline").count(), 3 * 2);
        assert!(svg.contains(">dctcp, min 1<") && svg.contains(">ours&lt;, min 2<"));
        assert!(svg.contains(">floor: 2<") && svg.contains(">400 ms<"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn the_table_has_what_was_held_and_what_came() {
        let scenario = records();
        let [dctcp, ours] = &*scenario.flows[0].cells else {
            panic!()
        };
        let found = periods(dctcp, 400_000.0);
        assert_eq!(found[0], Some((10.0, 10.0)));
        assert_eq!(found[4], Some((1.0, 10.0)));
        assert_eq!(found[10], Some((1.0, 1.0)));
        assert_eq!(found[19], Some((1.0, 3.0)));
        assert_eq!(periods(ours, 400_000.0)[19], Some((2.0, 2.0)));
        let table = table(&scenario, "stands");
        assert!(
            table.contains("<td>1–10</td>") && table.contains("ours&lt;"),
            "{table}"
        );
    }
}
