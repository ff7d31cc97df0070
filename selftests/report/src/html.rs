// SPDX-License-Identifier: GPL-2.0

//! The report: one HTML file with all its pictures inside, no script, nothing fetched.

use std::fmt::Write;
use std::path::Path;

use crate::cwnd;
use crate::format::{ratio, throughput, time};
use crate::header::{SCENARIOS, public, title};
use crate::plot::plot;
use crate::records::{Flow, Scenario};
use crate::svg::escape;
use crate::sweep::sweep;
use crate::table::{counters, shown};

const STYLE: &str = include_str!("report.css");

/// The times that have a column: all that the picture shows.
const TIMES: [&str; 8] = [
    "p50", "p75", "p90", "p99", "p99.9", "p99.99", "p99.999", "max",
];

/// A paragraph of one kind.
fn paragraph(out: &mut String, class: &str, lead: &str, text: &str) {
    _ = writeln!(
        out,
        "<p class=\"{class}\"><strong>{lead}</strong> {}</p>",
        escape(text)
    );
}

/// A box that scrolls by itself where the screen is narrow, by keyboard too.
fn scrolling(out: &mut String, label: &str, inside: &str) {
    _ = writeln!(
        out,
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{}\">\n{inside}</div>",
        escape(label)
    );
}

/// A flow's row under one variant; the first is the control.
fn row(out: &mut String, flow: &Flow, at: usize, times: bool) {
    let (cell, control) = (&flow.cells[at], &flow.cells[0]);
    _ = write!(
        out,
        "<tr><th scope=\"row\">{}</th><td>{}</td>",
        escape(&flow.name),
        escape(&cell.variant)
    );
    if times {
        for metric in TIMES {
            let text = cell.get(metric).map_or("–".into(), time);
            _ = write!(out, "<td class=\"n\">{text}</td>");
        }
    }
    let rate = cell.get("throughput").map_or("–".into(), throughput);
    let metric = if flow.has_times() {
        "p99"
    } else {
        "throughput"
    };
    let against = match (cell.get(metric), control.get(metric)) {
        (Some(value), Some(control)) => ratio(value, control),
        _ => "–".into(),
    };
    _ = writeln!(
        out,
        "<td class=\"n\">{rate}</td><td class=\"n\">{against}</td><td>{}</td></tr>",
        escape(&counters(cell))
    );
}

/// The figures of a scenario.
fn table(scenario: &Scenario) -> String {
    let times = scenario.flows.iter().any(Flow::has_times);
    let name = escape(&scenario.name);
    let mut out = format!(
        "<table>\n<caption>{name}: a flow's first row is the control; the ratio is to it, of p99, or of \
         throughput where no times were taken</caption>\n<thead><tr>"
    );
    let columns = ["flow", "variant"].into_iter();
    let columns = columns.chain(TIMES.into_iter().filter(|_| times));
    for column in columns.chain(["throughput", "ratio", "counters"]) {
        _ = write!(out, "<th scope=\"col\">{column}</th>");
    }
    out += "</tr></thead>\n<tbody>\n";
    for flow in &scenario.flows {
        for (at, _) in flow.cells.iter().enumerate().filter(|(_, c)| shown(c)) {
            row(&mut out, flow, at, times);
        }
    }
    out + "</tbody>\n</table>\n"
}

/// The section of one scenario, whether it was run or not.
fn section(
    out: &mut String,
    folder: &Path,
    name: &str,
    script: Option<&str>,
    scenario: Option<&Scenario>,
) {
    let text = escape(name);
    _ = writeln!(
        out,
        "<section aria-labelledby=\"{text}\">\n<h2 id=\"{text}\">{text}</h2>"
    );
    if let Some(script) = script {
        _ = writeln!(out, "<p>{}</p>", escape(&title(script)));
        let figures = public(script);
        let figures = figures.as_deref().unwrap_or("none");
        paragraph(out, "public", "Public figures:", figures);
    }
    let Some(scenario) = scenario else {
        _ = writeln!(
            out,
            "<p class=\"missing\">not run: <code>make scenarios SCENARIOS={text}</code></p>\n</section>"
        );
        return;
    };
    for void in &scenario.void {
        paragraph(out, "void", "Void:", void);
    }
    for meaning in &scenario.meaning {
        paragraph(out, "meaning", "Measured:", meaning);
    }
    if let Some(picture) = sweep(scenario) {
        scrolling(out, &format!("{name}, by number of connections"), &picture);
    }
    if let Some(picture) = plot(scenario) {
        scrolling(out, &format!("{name}, picture"), &picture);
    }
    for regime in cwnd::regimes(scenario) {
        let what = format!("{name}, windows of {regime}");
        scrolling(out, &what, &cwnd::drawing(scenario, regime));
        let what = format!("{what}, table");
        scrolling(out, &what, &cwnd::table(scenario, regime));
    }
    scrolling(out, &format!("{name}, table"), &table(scenario));
    for note in &scenario.notes {
        paragraph(out, "note", "Note:", note);
    }
    match std::fs::read_to_string(folder.join(format!("vtime/{name}.run"))) {
        Ok(run) => {
            _ = writeln!(
                out,
                "<details><summary>What this run of {text} was</summary>"
            );
            let run = format!("<pre>{}</pre>\n", escape(&run));
            scrolling(out, &format!("{name}, the run"), &run);
            *out += "</details>\n";
        }
        Err(_) => {
            _ = writeln!(
                out,
                "<p class=\"missing\">Kernel and image of this run: not on record</p>"
            );
        }
    }
    *out += "</section>\n";
}

/// What all runs have in common, and what they do not say.
fn provenance(out: &mut String) {
    *out += "<section aria-labelledby=\"run\">\n<h2 id=\"run\">What the run was</h2>\n";
    *out += "<p>Each scenario boots a guest of its own in QEMU with <code>-icount shift=0,sleep=off</code>: an \
             instruction is a nanosecond, one CPU, no KVM, fixed clock and <code>-seed 1</code>. The same image gives the \
             same records to the bit. <code>make bench</code> runs them all. Kernel, emulator and the \
             images' hashes are below each table.</p>\n";
    *out += "<h3>What it does not say</h3>\n<ul>\n\
             <li>Virtual time counts instructions. Caches, memory and a second CPU cost nothing in it, so its times are \
             not a machine's, and are not to be set against the public figures one to one.</li>\n\
             <li>What differs between variants of one scenario is the policy or the algorithm; the rest is equal.</li>\n\
             <li><em>cwnd min</em> in a table is the smallest that samples of tcp_info found; ACK by ACK, windows are in \
             T4-cwnd, which is a run of its own.</li>\n\
             </ul>\n</section>\n";
}

/// The page.
pub fn page(scenarios: &[Scenario], folder: &Path) -> String {
    let known = |name: &str| SCENARIOS.iter().any(|s| s.0 == name);
    let others = scenarios.iter().filter(|s| !known(&s.name));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>lowtail: what was measured</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">Skip to the figures</a>\n\
         <header>\n<h1>lowtail: what was measured</h1>\n\
         <p>The stock kernel against lowtail, in virtual time. All figures are from the run's records.</p>\n</header>\n\
         <nav aria-label=\"Scenarios\"><ul>\n"
    );
    let names = SCENARIOS.iter().map(|s| s.0);
    for name in names.chain(others.clone().map(|s| &*s.name)) {
        let name = escape(name);
        _ = writeln!(out, "<li><a href=\"#{name}\">{name}</a></li>");
    }
    out +=
        "<li><a href=\"#run\">the run</a></li>\n</ul></nav>\n<main id=\"main\" tabindex=\"-1\">\n";
    for (name, script) in SCENARIOS {
        let found = scenarios.iter().find(|s| s.name == name);
        section(&mut out, folder, name, Some(script), found);
    }
    for scenario in others {
        section(&mut out, folder, &scenario.name, None, Some(scenario));
    }
    provenance(&mut out);
    out + "</main>\n</body>\n</html>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests::from_text;

    const HOSTILE: &str = r#"[
{"scenario":"T0","variant":"\"><script>x()</script>","flow":"<img src=x onerror=y()>","metric":"p50","unit":"us","value":7},
{"scenario":"T0","variant":"-","flow":"-","metric":"meaning","unit":"text","value":"</svg><script>z()</script>"},
{"scenario":"q\" onclick=\"w()","variant":"v","flow":"f","metric":"p50","unit":"us","value":7}
]"#;

    #[test]
    fn records_cannot_break_out() {
        let page = page(&from_text(HOSTILE), Path::new("no/such/folder"));
        assert!(
            !page.contains("<script") && !page.contains("<img"),
            "{page}"
        );
        assert!(!page.contains("\" onclick"), "{page}");
        assert!(page.contains("&lt;img src=x onerror=y()&gt;"), "{page}");
    }

    #[test]
    fn nothing_is_fetched_and_nothing_made_up() {
        let page = page(&from_text(HOSTILE), Path::new("no/such/folder"));
        assert!(!page.contains("src=\"") && !page.contains("@import") && !page.contains("url("));
        assert!(page.contains("make scenarios SCENARIOS=T1<"), "{page}");
        assert!(!page.contains("make scenarios SCENARIOS=T0<"), "{page}");
        assert!(page.contains("image of this run: not on record"));
    }

    #[test]
    fn tables_and_pictures_say_what_they_are() {
        let page = page(&from_text(HOSTILE), Path::new("no/such/folder"));
        let count = |text: &str| page.matches(text).count();
        assert_eq!((count("<table>"), count("<caption>")), (2, 2));
        assert_eq!(count("<svg "), count("role=\"img\""));
        assert_eq!((count("<svg "), count("<title>")), (2, 3));
        assert_eq!(count("<h1"), 1);
    }
}
