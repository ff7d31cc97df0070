// SPDX-License-Identifier: GPL-2.0

//! The table for people: one row a flow and kind of time, then one line of counts a flow.

use std::fmt::Write;

use crate::cli::ClientArgs;
use crate::client::Outcome;
use crate::flow::Flow;
use crate::records::per_second;
use crate::stats::{PERCENTILES, TcpCounts, Times};
use crate::units::{human_time, plain_time};

/// The effective options, as lines that begin with '#'.
pub fn echo(args: &ClientArgs, flows: &[Flow]) -> String {
    let mut out = format!("# rpctail {} client", env!("CARGO_PKG_VERSION"));
    for server in &args.connect {
        _ = write!(out, " --connect {server}");
    }
    if let Some(ip) = args.bind {
        _ = write!(out, " --bind {ip}");
    }
    for (name, ns) in [
        ("wait", args.wait),
        ("duration", args.duration),
        ("warmup", args.warmup),
        ("cooldown", args.cooldown),
        ("drain", args.drain),
        ("sample", args.sample),
    ] {
        _ = write!(out, " --{name} {}", plain_time(ns));
    }
    _ = writeln!(
        out,
        " --seed {} --scenario {} --variant {}",
        args.seed, args.scenario, args.variant
    );
    for flow in flows {
        _ = writeln!(out, "#   --flow {flow}");
    }
    out
}

/// A row of times. A percentile beyond which there is no sample is marked, as it only repeats the max.
fn row(out: &mut String, name: &str, times: &Times) -> bool {
    let mut marked = false;
    _ = write!(out, "{name:<18}");
    if times.count() == 0 {
        _ = writeln!(out, " no sample");
        return false;
    }
    for (_, quantile) in PERCENTILES {
        let mark = if times.resolves(quantile) { ' ' } else { '~' };
        marked |= mark == '~';
        _ = write!(out, " {:>8}{mark}", human_time(times.quantile(quantile)));
    }
    _ = writeln!(out, " {:>8}", human_time(times.max()));
    marked
}

/// One end's counts.
fn tcp(out: &mut String, name: &str, tcp: &TcpCounts) {
    _ = write!(out, "{name} retrans {}", tcp.retrans);
    for (label, value) in [("RTO", tcp.rto), ("CE", tcp.ce)] {
        match value {
            Some(n) => _ = write!(out, ", {label} {n}"),
            None => _ = write!(out, ", {label} ?"),
        }
    }
    if let Some(cwnd) = tcp.cwnd_min {
        _ = write!(out, ", cwnd min {cwnd}");
    }
}

/// The table of a measurement of `duration` ns.
pub fn table(duration: u64, outcomes: &[Outcome]) -> String {
    let mut out = String::new();
    let mut marked = false;
    if outcomes.iter().any(|o| !o.flow.is_stream()) {
        _ = write!(out, "{:<18}", "flow");
        for (name, _) in PERCENTILES {
            _ = write!(out, " {name:>8} ");
        }
        _ = writeln!(out, " {:>8}", "max");
    }
    for Outcome { flow, stats, .. } in outcomes.iter().filter(|o| !o.flow.is_stream()) {
        marked |= row(&mut out, &flow.name, &stats.latency);
        marked |= row(&mut out, "  from the send", &stats.service);
        if stats.rounds.count() > 0 {
            marked |= row(&mut out, "  whole rounds", &stats.rounds);
        }
    }
    if marked {
        _ = writeln!(
            out,
            "~ no sample lies beyond: too few requests for this percentile"
        );
    }
    for Outcome { flow, stats, cc } in outcomes {
        _ = write!(out, "\n{}: ", flow.name);
        if !flow.is_stream() {
            let (offered, achieved) = (
                per_second(stats.requests, duration),
                per_second(stats.replies, duration),
            );
            _ = write!(out, "offered {offered:.1}/s, achieved {achieved:.1}/s, ");
        }
        let mbit = per_second(stats.bytes, duration) * 8.0 / 1e6;
        _ = writeln!(
            out,
            "{mbit:.1} Mbit/s, errors {}, unfinished {}",
            stats.errors, stats.unfinished
        );
        tcp(&mut out, &format!("  client ({})", cc.0), &stats.tcp);
        if !flow.is_stream() && flow.http.is_none() {
            tcp(&mut out, &format!("\n  server ({})", cc.1), &stats.peer);
        }
        _ = writeln!(out);
        if let Some(error) = &stats.first_error {
            _ = writeln!(out, "  first error: {error}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::flow_spec;
    use crate::stats::Stats;

    #[test]
    fn marks_what_it_cannot_know() {
        let mut stats = Stats::default();
        (0..100).for_each(|_| stats.latency.record(474_000));
        let flow = Flow::new(flow_spec("name=a").unwrap()).unwrap();
        let text = table(
            1_000_000_000,
            &[Outcome {
                flow,
                stats,
                cc: ("x".into(), "y".into()),
            }],
        );
        assert!(text.contains("474 µs    474 µs    474 µs"), "{text}");
        assert!(
            text.contains("474 µs~") && text.contains("~ no sample lies beyond"),
            "{text}"
        );
        assert!(text.contains("RTO ?"), "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
    }
}
