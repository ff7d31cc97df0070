// SPDX-License-Identifier: GPL-2.0

//! What a scenario's own header says: its first sentence and its public figures with their source.
//!
//! The headers are compiled in, so that a figure of somebody else's is written down once.

/// The scenarios that the report has a section for, in its order, with their scripts.
pub const SCENARIOS: [(&str, &str); 18] = [
    ("T0", include_str!("../../scenarios/T0.sh")),
    ("T0-web", include_str!("../../scenarios/T0-web.sh")),
    ("T0-slow", include_str!("../../scenarios/T0-slow.sh")),
    ("T1", include_str!("../../scenarios/T1.sh")),
    ("T2", include_str!("../../scenarios/T2.sh")),
    ("T3", include_str!("../../scenarios/T3.sh")),
    ("netperf-rr", include_str!("../../scenarios/netperf-rr.sh")),
    ("T4", include_str!("../../scenarios/T4.sh")),
    ("T4-loss", include_str!("../../scenarios/T4-loss.sh")),
    ("T4-cwnd", include_str!("../../scenarios/T4-cwnd.sh")),
    ("incast", include_str!("../../scenarios/incast.sh")),
    ("sweep", include_str!("../../scenarios/sweep.sh")),
    ("sweep-many", include_str!("../../scenarios/sweep-many.sh")),
    (
        "sweep-closed",
        include_str!("../../scenarios/sweep-closed.sh"),
    ),
    ("sweep-fq", include_str!("../../scenarios/sweep-fq.sh")),
    ("cost", include_str!("../../scenarios/cost.sh")),
    ("ack", include_str!("../../scenarios/ack.sh")),
    ("trace", include_str!("../../scenarios/trace.sh")),
];

/// The lines of the header, without their `# `.
fn lines(script: &str) -> impl Iterator<Item = &str> {
    script
        .lines()
        .take_while(|line| line.starts_with('#'))
        .map(|line| line[1..].strip_prefix(' ').unwrap_or(&line[1..]))
        .filter(|line| !line.starts_with("shellcheck") && !line.starts_with("SPDX"))
}

/// The first paragraph, without the scenario's name.
pub fn title(script: &str) -> String {
    let words: Vec<&str> = lines(script)
        .skip_while(|line| line.is_empty())
        .take_while(|line| !line.is_empty())
        .collect();
    let text = words.join(" ");
    text.split_once(": ")
        .map_or(text.clone(), |(_, rest)| rest.to_owned())
}

/// The public figures with their source; nothing if the header names none.
pub fn public(script: &str) -> Option<String> {
    let mut found = lines(script).skip_while(|line| !line.starts_with("Public figures"));
    let first = found.next()?.strip_prefix("Public figures")?;
    let mut text = first.trim_start_matches([':', ' ']).to_owned();
    for line in found.take_while(|line| line.starts_with("  ")) {
        text += " ";
        text += line.trim();
    }
    (!text.starts_with("none")).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_to_its_end_and_no_further() {
        let script = "# SPDX-License-Identifier: X\n#\n# T9: what it\n# is.\n#\n\
                      # Public figures (thread): 43\n#   ms.\n# Goal: 1\nset -e\n# Public figures: 7\n";
        assert_eq!(title(script), "what it is.");
        assert_eq!(public(script).unwrap(), "(thread): 43 ms.");
        assert_eq!(public("# T9: x\n#\n# Public figures: none.\n"), None);
        assert_eq!(public("# T9: x\ncode\n# Public figures: 7\n"), None);
    }

    #[test]
    fn the_scripts_have_what_the_report_needs() {
        for (name, script) in SCENARIOS {
            assert!(!title(script).is_empty(), "{name}");
        }
        for name in ["T0", "T1", "T2", "T3", "T4"] {
            let (_, script) = SCENARIOS.iter().find(|s| s.0 == name).unwrap();
            assert!(public(script).unwrap().contains("20"), "{name}");
        }
    }
}
