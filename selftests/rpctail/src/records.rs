// SPDX-License-Identifier: GPL-2.0

//! The project's records: one measured or stated thing each, from which tables and plots are made.

use std::borrow::Cow;

use serde::Serialize;

use crate::client::Outcome;
use crate::stats::{PERCENTILES, TcpCounts, Times};
use crate::units::SECOND;

/// A number or a text.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A count.
    Count(u64),
    /// A measured number.
    Number(f64),
    /// A text; its unit is `text`.
    Text(String),
}

/// One record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// What was run.
    pub scenario: String,
    /// Under which of the things compared.
    pub variant: String,
    /// Which of its flows.
    pub flow: String,
    /// What was measured.
    pub metric: String,
    /// In what.
    pub unit: &'static str,
    /// How much.
    pub value: Value,
}

/// Collects the records of one flow.
struct Sheet<'a> {
    scenario: &'a str,
    variant: &'a str,
    flow: &'a str,
    records: Vec<Record>,
}

impl Sheet<'_> {
    fn put(&mut self, metric: &str, unit: &'static str, value: Value) {
        self.records.push(Record {
            scenario: self.scenario.into(),
            variant: self.variant.into(),
            flow: self.flow.into(),
            metric: metric.into(),
            unit,
            value,
        });
    }

    fn count(&mut self, metric: &str, value: u64) {
        self.put(metric, "count", Value::Count(value));
    }

    /// Percentiles and extremes, in µs with a resolution of 1 ns.
    fn times(&mut self, prefix: &str, times: &Times) {
        if times.count() == 0 {
            return;
        }
        let us = |ns: u64| Value::Number(ns as f64 / 1_000.0);
        self.put(&format!("{prefix}min"), "us", us(times.min()));
        for (name, quantile) in PERCENTILES {
            self.put(
                &format!("{prefix}{name}"),
                "us",
                us(times.quantile(quantile)),
            );
        }
        self.put(&format!("{prefix}max"), "us", us(times.max()));
    }

    fn tcp(&mut self, prefix: &str, tcp: &TcpCounts) {
        self.count(&format!("{prefix}retrans"), tcp.retrans);
        for (name, value) in [("rto", tcp.rto), ("ce", tcp.ce)] {
            if let Some(value) = value {
                self.count(&format!("{prefix}{name}"), value);
            }
        }
        if let Some(cwnd) = tcp.cwnd_min {
            self.put(
                &format!("{prefix}cwnd_min"),
                "packets",
                Value::Count(cwnd.into()),
            );
        }
    }
}

/// A number of things in `ns`, as things a second.
pub fn per_second(n: u64, ns: u64) -> f64 {
    n as f64 * SECOND as f64 / ns as f64
}

/// The records of one flow that was measured for `duration` (ns).
pub fn records(scenario: &str, variant: &str, duration: u64, outcome: &Outcome) -> Vec<Record> {
    let Outcome { flow, stats, cc } = outcome;
    let mut sheet = Sheet {
        scenario,
        variant,
        flow: &flow.name,
        records: Vec::new(),
    };
    if !flow.is_stream() {
        sheet.times("", &stats.latency);
        sheet.times("service_", &stats.service);
        sheet.times("round_", &stats.rounds);
        sheet.count("requests", stats.requests);
        sheet.count("replies", stats.replies);
        sheet.count("unfinished", stats.unfinished);
        sheet.put(
            "offered",
            "1/s",
            Value::Number(per_second(stats.requests, duration)),
        );
        sheet.put(
            "achieved",
            "1/s",
            Value::Number(per_second(stats.replies, duration)),
        );
    }
    let mbit = per_second(stats.bytes, duration) * 8.0 / 1e6;
    sheet.put("throughput", "Mbit/s", Value::Number(mbit));
    if let Some(fairness) = stats.fairness.filter(|_| flow.conns > 1) {
        sheet.put("fairness", "index", Value::Number(fairness));
    }
    sheet.count("errors", stats.errors);
    sheet.tcp("", &stats.tcp);
    // What another server than rpctail saw is not known.
    let peer_tells = flow.http.is_none();
    if !flow.is_stream() && peer_tells {
        sheet.tcp("peer_", &stats.peer);
    }
    sheet.put("cc", "text", Value::Text(cc.0.clone()));
    if peer_tells {
        sheet.put("peer_cc", "text", Value::Text(cc.1.clone()));
    }
    sheet.put("options", "text", Value::Text(flow.to_string()));
    if let Some(error) = &stats.first_error {
        sheet.put("note", "text", Value::Text(error.clone()));
    }
    sheet.records
}

/// Records as a JSON array with one record a line, so that both `jq` and `diff` like it.
pub fn json(records: &[Record]) -> String {
    let lines = records
        .iter()
        .map(|r| serde_json::to_string(r).expect("a record has a JSON form"));
    format!("[\n{}\n]\n", lines.collect::<Vec<_>>().join(",\n"))
}

/// A field of CSV: in quotes where its text would end it (RFC 4180 §2).
fn field(text: &str) -> Cow<'_, str> {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")).into(),
        false => text.into(),
    }
}

/// The percentiles of all flows as CSV: `scenario,variant,flow,metric,us`.
pub fn csv(records: &[Record]) -> String {
    let mut out = String::from("scenario,variant,flow,metric,us\n");
    for record in records.iter().filter(|r| r.unit == "us") {
        if let Value::Number(us) = record.value {
            let Record {
                scenario,
                variant,
                flow,
                metric,
                ..
            } = record;
            let [scenario, variant, flow, metric] =
                [scenario, variant, flow, metric].map(|text| field(text));
            out += &format!("{scenario},{variant},{flow},{metric},{us}\n");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::flow_spec;
    use crate::flow::Flow;
    use crate::stats::Stats;

    fn outcome() -> Outcome {
        let mut stats = Stats {
            requests: 2,
            replies: 2,
            bytes: 1_250_000,
            ..Stats::default()
        };
        stats.latency.record(474_100);
        stats.latency.record(474_100);
        stats.service.record(400_000);
        stats.tcp.cwnd(3);
        let flow = Flow::new(flow_spec("rate=2").unwrap()).unwrap();
        Outcome {
            flow,
            stats,
            cc: ("dctcp".into(), "cubic".into()),
        }
    }

    #[test]
    fn the_format_is_the_projects() {
        let text = json(&records("T0", "stock", SECOND, &outcome()));
        let line = r#"{"scenario":"T0","variant":"stock","flow":"rpc","metric":"p99","unit":"us","value":474.1}"#;
        assert!(
            text.lines().any(|l| l.trim_end_matches(',') == line),
            "{text}"
        );
        let back: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
        let value = |metric: &str| {
            back.iter()
                .find(|r| r["metric"] == metric)
                .map(|r| r["value"].clone())
        };
        assert_eq!(value("throughput").unwrap(), 10.0);
        assert_eq!(value("cwnd_min").unwrap(), 3);
        assert_eq!(value("cc").unwrap(), "dctcp");
        assert_eq!(value("requests").unwrap(), 2);
        // What the kernel did not tell is left out, not 0.
        assert_eq!(value("rto"), None);
        assert_eq!(value("round_p99"), None);
    }

    #[test]
    fn csv_has_the_times() {
        let text = csv(&records("T0", "stock", SECOND, &outcome()));
        assert!(text.contains("T0,stock,rpc,p99,474.1\n"), "{text}");
        assert!(!text.contains("throughput"));
        let text = csv(&records("T0", "16 flows, \"fq\"", SECOND, &outcome()));
        assert!(
            text.contains("T0,\"16 flows, \"\"fq\"\"\",rpc,p99,474.1\n"),
            "{text}"
        );
    }
}
