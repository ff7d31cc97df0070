// SPDX-License-Identifier: GPL-2.0

//! The text of a history: what is written is read back, and what is read was understood whole.

use fuzz::{check, corpus};
use oracle::{
    ffi,
    history::{History, Step, DEFAULTS},
};
use proptest::{collection::vec, prelude::*};

const CASES: u32 = 2048;

fn step() -> impl Strategy<Value = Step> {
    let small = || prop_oneof![Just(0u32), any::<u32>()];
    (0..ffi::ORACLE_KINDS, small(), small(), small()).prop_map(|(kind, a, b, c)| Step {
        kind,
        a,
        b,
        c,
    })
}

fn history() -> impl Strategy<Value = History> {
    let parameters = any::<[u32; DEFAULTS.len()]>();
    (
        any::<[u32; 12]>(),
        any::<bool>(),
        parameters,
        vec(step(), 0..30),
    )
        .prop_map(|(n, defaults, parameters, steps)| History {
            start: ffi::oracle_start {
                isn: n[0],
                rcv_isn: n[1],
                mss: n[2],
                flags: n[3],
                syns: n[4],
                delivered: n[5],
                initcwnd: n[6],
                clamp: n[7],
                cwnd: n[8],
                ssthresh: n[9],
            },
            before_wrap: n[10],
            late: n[11],
            parameters: if defaults { DEFAULTS } else { parameters },
            steps,
        })
}

#[test]
fn fuzz_history() {
    check(corpus!("history"), CASES, history(), |history| {
        let text = history.to_string();
        prop_assert_eq!(History::parse(&text), Ok(history), "{}", text);
        Ok(())
    });
}

/// Lines of words that are known, numbers that fit or not, and anything.
fn line() -> impl Strategy<Value = String> {
    let known =
        "start|set|time|timer|write|ack|receive|pmtu|set_cwnd|parameter|#|isn=|late=1|mss=x";
    let word = prop_oneof![
        3 => known,
        3 => any::<u32>().prop_map(|n| n.to_string()),
        2 => "[0-9]{1,2}",
        1 => "[a-z=0-9-]{1,12}",
        1 => "\\PC{0,8}",
    ];
    vec(word, 0..6).prop_map(|words| words.join(" "))
}

/// A text is refused by its line's number, or is understood to its last word.
#[test]
fn fuzz_history_text() {
    check(corpus!("history_text"), CASES, vec(line(), 0..5), |lines| {
        let text = lines.join("\n");
        match History::parse(&text) {
            Err(error) => {
                let number = error
                    .strip_prefix("line ")
                    .and_then(|e| e.split(':').next());
                let number: usize = number.and_then(|n| n.parse().ok()).unwrap_or(0);
                let named = number.checked_sub(1).and_then(|at| text.lines().nth(at));
                prop_assert!(named.is_some_and(|l| error.contains(l)), "{}", error);
            }
            Ok(history) => {
                prop_assert_eq!(History::parse(&history.to_string()), Ok(history.clone()));
                let said: Vec<&str> = text
                    .lines()
                    .filter_map(|l| l.split_whitespace().next())
                    .filter(|w| !w.starts_with('#') && !["start", "set"].contains(w))
                    .collect();
                prop_assert_eq!(history.steps.len(), said.len());
                // Name, and three numbers at most: none of them was passed over.
                for line in text
                    .lines()
                    .filter(|l| !l.trim_start().starts_with(['#', 's']))
                {
                    let words = line.split_whitespace().count();
                    prop_assert!(words <= 4, "passed over the end of '{}'", line);
                }
                for line in text
                    .lines()
                    .filter(|l| l.split_whitespace().next() == Some("set"))
                {
                    let words = line.split_whitespace().count();
                    prop_assert!(words == 3, "'{}' is no number and value", line);
                }
            }
        }
        Ok(())
    });
}
