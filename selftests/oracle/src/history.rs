// SPDX-License-Identifier: GPL-2.0

//! The history of a connection: how it begins, and steps. A text, so that one that showed a
//! difference can be kept and run again.

use std::fmt::{self, Display, Write as _};

use crate::ffi;

/// One step.
pub type Step = ffi::oracle_step;

/// What the steps of a text are called, by their number.
const NAMES: [&str; ffi::ORACLE_KINDS as usize] = [
    "time",
    "timer",
    "write",
    "push",
    "ack",
    "receive",
    "local_drops",
    "pmtu",
    "socket",
    "limits",
    "choose",
    "set_cwnd",
    "parameter",
];

/// The parameters' values at first, by their number: those of the kernel and of the module.
pub const DEFAULTS: [u32; ffi::ORACLE_PARAMETERS as usize] =
    [4, 1024, 1, 1, 200, 120, 3, 0, 128, 12, 3, 2, 1, 3, 2];

/// A connection's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// How it begins.
    pub start: ffi::oracle_start,
    /// Jiffies before their low 32 bits wrap.
    pub before_wrap: u32,
    /// The application's underuse of the window is judged when `dctcp_floor` gets to it (1), or at
    /// once like core TCP does (0).
    pub late: u32,
    /// Every parameter's value at first.
    pub parameters: [u32; ffi::ORACLE_PARAMETERS as usize],
    /// What happens.
    pub steps: Vec<Step>,
}

impl History {
    /// The members of the first line, by name.
    fn members(&mut self) -> [(&'static str, &mut u32); 12] {
        let start = &mut self.start;
        [
            ("isn", &mut start.isn),
            ("rcv_isn", &mut start.rcv_isn),
            ("mss", &mut start.mss),
            ("flags", &mut start.flags),
            ("syns", &mut start.syns),
            ("delivered", &mut start.delivered),
            ("initcwnd", &mut start.initcwnd),
            ("clamp", &mut start.clamp),
            ("cwnd", &mut start.cwnd),
            ("ssthresh", &mut start.ssthresh),
            ("before_wrap", &mut self.before_wrap),
            ("late", &mut self.late),
        ]
    }

    /// Reads a text that [`Display`] wrote. Lines that begin with `#` are comments.
    ///
    /// # Errors
    ///
    /// A line that is not understood, with its number.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut history = Self {
            start: ffi::oracle_start::default(),
            before_wrap: 0,
            late: 0,
            parameters: DEFAULTS,
            steps: Vec::new(),
        };
        for (n, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            let Some(first) = words.next() else { continue };
            if first.starts_with('#') {
                continue;
            }
            let bad = || format!("line {}: {line}", n + 1);
            if first == "start" {
                for word in words {
                    let (name, value) = word.split_once('=').ok_or_else(bad)?;
                    let value = value.parse().map_err(|_| bad())?;
                    let members = history.members();
                    let member = members.into_iter().find(|(known, _)| *known == name);
                    *member.ok_or_else(bad)?.1 = value;
                }
                continue;
            }
            let words: Vec<&str> = words.collect();
            let mut numbers = [0; 3];
            if words.len() > numbers.len() || (first == "set" && words.len() != 2) {
                return Err(bad());
            }
            for (number, word) in numbers.iter_mut().zip(words) {
                *number = word.parse().map_err(|_| bad())?;
            }
            let [a, b, c] = numbers;
            if first == "set" {
                *history.parameters.get_mut(a as usize).ok_or_else(bad)? = b;
                continue;
            }
            let kind = NAMES
                .iter()
                .position(|name| *name == first)
                .ok_or_else(bad)? as u32;
            history.steps.push(Step { kind, a, b, c });
        }
        Ok(history)
    }
}

impl Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = String::from("start");
        for (name, value) in self.clone().members() {
            write!(line, " {name}={value}")?;
        }
        writeln!(f, "{line}")?;
        for (i, (value, default)) in self.parameters.iter().zip(DEFAULTS).enumerate() {
            if *value != default {
                writeln!(f, "set {i} {value}")?;
            }
        }
        for step in &self.steps {
            writeln!(f, "{}", describe(step))?;
        }
        Ok(())
    }
}

/// A step as a line of text.
pub fn describe(step: &Step) -> String {
    let Step { kind, a, b, c } = step;
    let name = NAMES[*kind as usize];
    match (a, b, c) {
        (0, 0, 0) => name.to_owned(),
        (a, 0, 0) => format!("{name} {a}"),
        (a, b, 0) => format!("{name} {a} {b}"),
        (a, b, c) => format!("{name} {a} {b} {c}"),
    }
}
