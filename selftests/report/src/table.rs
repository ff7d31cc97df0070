// SPDX-License-Identifier: GPL-2.0

//! The tables of `make run`: one block a scenario, one row a flow and variant, control first.

use std::fmt::Write;

use crate::format::{count, ratio, throughput, time, wrap};
use crate::records::{Cell, Flow, Scenario};

/// The widest line (characters).
const WIDTH: usize = 100;

/// Width of the columns for the flow's and the variant's name.
const FLOW: usize = 13;
const VARIANT: usize = 17;

/// The times that have a column (metric, its width).
const TIMES: [&str; 4] = ["p50", "p99", "p99.9", "max"];
const TIME: usize = 9;
const RATIO: usize = 8;

/// Where the counters begin.
const COUNTERS: usize = 2 + FLOW + VARIANT + TIMES.len() * TIME + RATIO + 2;

/// Counters that say something even when they are 0.
const ALWAYS: [&str; 2] = ["TCPAutoCorking", "cwnd_min"];

/// Counters that are sums of the load and not events.
const NEVER: [&str; 3] = ["requests", "replies", "samples"];

/// The short name of a counter.
fn label(name: &str) -> &str {
    match name {
        "TCPAutoCorking" => "autocork",
        "cwnd_min" => "cwnd min",
        "rto" => "RTO",
        "ce" => "CE",
        "queue_mean" => "queue kB",
        "drop_share" => "dropped %",
        "cost" => "cost %",
        "queue_p99" => "p99",
        name => name.strip_prefix("TcpExt").unwrap_or(name),
    }
}

/// The counters of a row, most telling first. What both ends of a flow counted (`retrans` and
/// `peer_retrans`) is added up; of their smallest windows it is the smaller.
pub fn counters(cell: &Cell) -> String {
    let mut counts: Vec<(&str, f64)> = Vec::new();
    for metric in &cell.metrics {
        let name = metric.name.strip_prefix("peer_").unwrap_or(&metric.name);
        if !matches!(metric.unit.as_str(), "count" | "packets" | "kB" | "percent")
            || NEVER.contains(&name)
        {
            continue;
        }
        match counts.iter_mut().find(|c| c.0 == name) {
            Some(count) if metric.unit == "packets" => count.1 = count.1.min(metric.value),
            Some(count) => count.1 += metric.value,
            None => counts.push((name, metric.value)),
        }
    }
    counts.retain(|(name, value)| *value != 0.0 || ALWAYS.contains(name));
    counts.sort_by_key(|(name, _)| !ALWAYS.contains(name));
    let text = |(name, value): &(&str, f64)| {
        format!("{} {}", label(name), count(*value)).replace(' ', "\u{a0}")
    };
    counts.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// Pads to a width in characters; longer text is followed by one space.
fn pad(text: &str, width: usize) -> String {
    let have = text.chars().count();
    format!("{text}{}", " ".repeat(width.saturating_sub(have).max(1)))
}

/// Pads on the left.
fn right(text: &str, width: usize) -> String {
    let have = text.chars().count();
    format!("{}{text}", " ".repeat(width.saturating_sub(have)))
}

/// Cuts a name to its column.
fn fit(name: &str, width: usize) -> String {
    match name.chars().count() < width {
        true => name.to_owned(),
        false => name.chars().take(width - 2).chain(['…']).collect(),
    }
}

fn row(out: &mut String, flow: &Flow, cell: &Cell, first: bool) {
    let name = if first {
        fit(&flow.name, FLOW)
    } else {
        String::new()
    };
    let mut line = format!(
        "  {}{}",
        pad(&name, FLOW),
        pad(&fit(&cell.variant, VARIANT), VARIANT)
    );
    let against = |metric: &str| match (
        flow.cells.first().and_then(|c| c.get(metric)),
        cell.get(metric),
    ) {
        (Some(_), Some(_)) if first => "1x".into(),
        (Some(control), Some(value)) => ratio(value, control),
        _ => String::new(),
    };
    if flow.has_times() {
        for metric in TIMES {
            line += &right(&cell.get(metric).map_or("-".into(), time), TIME);
        }
        line += &right(&against("p99"), RATIO);
    } else {
        let value = cell.get("throughput").map_or(String::new(), throughput);
        line += &right(&value, TIMES.len() * TIME);
        line += &right(&against("throughput"), RATIO);
    }
    let counters = wrap(&counters(cell), WIDTH - COUNTERS, 0);
    let mut counters = counters.lines().map(|l| l.replace('\u{a0}', " "));
    if let Some(text) = counters.next() {
        line += &format!("  {text}");
    }
    _ = writeln!(out, "{}", line.trim_end());
    for text in counters {
        _ = writeln!(out, "{}{text}", " ".repeat(COUNTERS));
    }
}

fn block(out: &mut String, scenario: &Scenario) {
    let name = &scenario.name;
    let sentence = |lead: &str, text: &str| wrap(&format!("{lead}{text}"), WIDTH, 4) + "\n";
    if scenario.meaning.is_empty() {
        _ = writeln!(out, "{name}");
    }
    for (i, text) in scenario.meaning.iter().enumerate() {
        *out += &sentence(
            &if i == 0 {
                format!("{name}: ")
            } else {
                String::new()
            },
            text,
        );
    }
    for text in &scenario.void {
        *out += &format!("  {}", sentence("void: ", text));
    }
    let flows: Vec<&Flow> = scenario
        .flows
        .iter()
        .filter(|f| f.cells.iter().any(shown))
        .collect();
    if !flows.is_empty() {
        let times: String = match flows.iter().any(|f| f.has_times()) {
            true => TIMES.iter().map(|m| right(m, TIME)).collect(),
            false => right("throughput", TIMES.len() * TIME),
        };
        let (flow, variant) = (pad("flow", FLOW), pad("variant", VARIANT));
        _ = writeln!(
            out,
            "  {flow}{variant}{times}{}  counters",
            right("ratio", RATIO)
        );
    }
    for flow in flows {
        for (i, cell) in flow.cells.iter().filter(|c| shown(c)).enumerate() {
            row(out, flow, cell, i == 0);
        }
    }
    for text in &scenario.notes {
        *out += &format!("  {}", sentence("note: ", text));
    }
}

/// Whether a cell has anything for the table.
pub fn shown(cell: &Cell) -> bool {
    cell.get("p50").is_some() || cell.get("throughput").is_some() || !counters(cell).is_empty()
}

/// All tables.
pub fn tables(scenarios: &[Scenario]) -> String {
    let mut out = String::new();
    for (i, scenario) in scenarios.iter().enumerate() {
        if i > 0 {
            out += "\n";
        }
        block(&mut out, scenario);
    }
    out += "\nratio: p99, or throughput, against the flow's first row, which is the control\n";
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests::from_text;

    const TEXT: &str = r#"[
{"scenario":"T0","variant":"stock","flow":"reply","metric":"p50","unit":"us","value":707},
{"scenario":"T0","variant":"stock","flow":"reply","metric":"p99","unit":"us","value":948.2},
{"scenario":"T0","variant":"stock","flow":"reply","metric":"p99.9","unit":"us","value":2100},
{"scenario":"T0","variant":"stock","flow":"reply","metric":"max","unit":"us","value":43620},
{"scenario":"T0","variant":"stock","flow":"reply","metric":"requests","unit":"count","value":6000},
{"scenario":"T0","variant":"stock","flow":"reply","metric":"TCPAutoCorking","unit":"count","value":6000},
{"scenario":"T0","variant":"stock","flow":"reply","metric":"cwnd_min","unit":"packets","value":10},
{"scenario":"T0","variant":"stock","flow":"reply","metric":"retrans","unit":"count","value":123456},
{"scenario":"T0","variant":"stock","flow":"reply","metric":"TcpExtTCPLossProbes","unit":"count","value":12345},
{"scenario":"T0","variant":"stock","flow":"reply","metric":"peer_cwnd_min","unit":"packets","value":2},
{"scenario":"T0","variant":"stock","flow":"reply","metric":"peer_retrans","unit":"count","value":4},
{"scenario":"T0","variant":"nodelay","flow":"reply","metric":"p50","unit":"us","value":474},
{"scenario":"T0","variant":"nodelay","flow":"reply","metric":"p99","unit":"us","value":474.1},
{"scenario":"T0","variant":"nodelay","flow":"reply","metric":"TCPAutoCorking","unit":"count","value":0},
{"scenario":"T0","variant":"-","flow":"-","metric":"meaning","unit":"text","value":"A reply in two NODELAY writes. Stock holds the second until a TX completion or an ACK frees the first."},
{"scenario":"T3","variant":"stock","flow":"a-stream-with-a-long-name","metric":"throughput","unit":"Mbit/s","value":485.26},
{"scenario":"T3","variant":"autocorking-off-and-more","flow":"a-stream-with-a-long-name","metric":"throughput","unit":"Mbit/s","value":215},
{"scenario":"T3","variant":"-","flow":"-","metric":"void","unit":"text","value":"stock did not autocork"},
{"scenario":"T3","variant":"-","flow":"-","metric":"note","unit":"text","value":"autocork_policy.ko is not in this image"}
]"#;

    #[test]
    fn a_row_has_its_times_ratio_and_counters() {
        let text = tables(&from_text(TEXT));
        let line = |part: &str| {
            text.lines()
                .find(|l| l.contains(part))
                .unwrap_or_else(|| panic!("{part}\n{text}"))
        };
        for part in [
            "707 µs",
            "948 µs",
            "2.10 ms",
            "43.6 ms",
            "1x",
            "autocork 6000",
        ] {
            assert!(line("stock  ").contains(part), "{text}");
        }
        assert!(line("  nodelay").contains("0.50x  autocork 0"), "{text}");
        assert!(line("485 Mbit/s").contains("1x"), "{text}");
        assert!(line("215 Mbit/s").contains("0.44x"), "{text}");
        assert!(
            text.contains("TCPLossProbes 12345") && !text.contains("requests"),
            "{text}"
        );
    }

    #[test]
    fn says_what_it_means_and_when_it_is_void() {
        let text = tables(&from_text(TEXT));
        assert!(
            text.starts_with("T0: A reply in two NODELAY writes."),
            "{text}"
        );
        assert!(
            text.contains("\nT3\n  void: stock did not autocork\n"),
            "{text}"
        );
        assert!(
            text.contains("  note: autocork_policy.ko is not in this image\n"),
            "{text}"
        );
    }

    #[test]
    fn no_line_is_wider_than_it_may_be() {
        let text = tables(&from_text(TEXT));
        assert!(text.lines().all(|l| l.chars().count() <= WIDTH), "{text}");
    }
}
