// SPDX-License-Identifier: GPL-2.0

//! Reads records and puts them in order: scenario, flow, variant, metric.
//!
//! The order in which things first appear is kept: a scenario runs its control first.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A number or a sentence.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum Value {
    /// A measured or counted number.
    Number(f64),
    /// A text.
    Text(String),
}

/// One record as it is in the file.
#[derive(Clone, Debug, Deserialize)]
struct Record {
    scenario: String,
    variant: String,
    flow: String,
    metric: String,
    unit: String,
    value: Value,
}

/// One metric of one flow under one variant.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Its name, `p99`.
    pub name: String,
    /// Its unit, `us`.
    pub unit: String,
    /// How much.
    pub value: f64,
}

/// What one variant did to one flow.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The variant's name.
    pub variant: String,
    /// Its metrics, in the order of the file.
    pub metrics: Vec<Metric>,
    /// Its congestion window over time: from when (µs), how much (packets).
    pub windows: Vec<(f64, f64)>,
}

impl Cell {
    /// The value of a metric.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.metrics
            .iter()
            .find(|m| m.name == name)
            .map(|m| m.value)
    }
}

/// One flow under all variants; the first is the control.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// One cell a variant.
    pub cells: Vec<Cell>,
}

impl Flow {
    /// Whether latencies were measured, and not only throughput.
    pub fn has_times(&self) -> bool {
        self.cells.iter().any(|c| c.get("p50").is_some())
    }
}

/// All that is known of one scenario.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    /// Its name, `T0`.
    pub name: String,
    /// The file it was read from.
    pub file: PathBuf,
    /// What it shows.
    pub meaning: Vec<String>,
    /// Why its comparison says nothing.
    pub void: Vec<String>,
    /// What else is to be said.
    pub notes: Vec<String>,
    /// Its flows.
    pub flows: Vec<Flow>,
}

impl Scenario {
    fn sentence(&mut self, record: &Record, text: &str) {
        let place: Vec<&str> = [&*record.variant, &*record.flow]
            .into_iter()
            .filter(|s| *s != "-")
            .collect();
        let text = match place.as_slice() {
            [] => text.to_owned(),
            place => format!("{}: {text}", place.join(", ")),
        };
        match record.metric.as_str() {
            "meaning" => self.meaning.push(text),
            "void" => self.void.push(text),
            "note" => self.notes.push(text),
            // Names of algorithms, echoed options: kept in the records for whoever looks there.
            _ => {}
        }
    }

    /// The cell that a record belongs to.
    fn cell(&mut self, record: &Record) -> &mut Cell {
        let flow = entry(
            &mut self.flows,
            |f| f.name == record.flow,
            || Flow {
                name: record.flow.clone(),
                cells: Vec::new(),
            },
        );
        entry(
            &mut flow.cells,
            |c| c.variant == record.variant,
            || Cell {
                variant: record.variant.clone(),
                metrics: Vec::new(),
                windows: Vec::new(),
            },
        )
    }

    fn number(&mut self, record: &Record, value: f64) {
        let cell = self.cell(record);
        let metric = entry(
            &mut cell.metrics,
            |m| m.name == record.metric,
            || Metric {
                name: record.metric.clone(),
                unit: record.unit.clone(),
                value,
            },
        );
        // What was measured again replaces what was measured before.
        metric.value = value;
    }
}

/// The element that `is` the one, made by `new` at the end if there is none.
fn entry<T>(list: &mut Vec<T>, is: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let at = list.iter().position(is).unwrap_or_else(|| {
        list.push(new());
        list.len() - 1
    });
    &mut list[at]
}

/// A window over time as its record has it: `TIME:WINDOW TIME:WINDOW …`, in order of time.
fn windows(text: &str) -> Result<Vec<(f64, f64)>, String> {
    let point = |word: &str| {
        let (at, window) = word.split_once(':')?;
        let (at, window): (u32, u32) = (at.parse().ok()?, window.parse().ok()?);
        Some((f64::from(at), f64::from(window)))
    };
    let mut points = Vec::new();
    for word in text.split_whitespace() {
        points.push(point(word).ok_or_else(|| {
            format!("'{word}' is no time and window; run the scenario that made it again")
        })?);
    }
    match points.is_sorted_by(|a, b| a.0 <= b.0) {
        true => Ok(points),
        false => Err("windows out of order; run the scenario that made them again".into()),
    }
}

/// The files that the command line means: a folder stands for its `*.json`, in order of name.
pub fn files(inputs: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for input in inputs {
        if !input.is_dir() {
            files.push(input.clone());
            continue;
        }
        let explain = |e| format!("{}: {e}", input.display());
        let mut found = Vec::new();
        for item in fs::read_dir(input).map_err(explain)? {
            let path = item.map_err(explain)?.path();
            if path.extension().is_some_and(|e| e == "json") {
                found.push(path);
            }
        }
        found.sort();
        files.extend(found);
    }
    match files.is_empty() {
        true => Err(format!(
            "no records in {}: run 'make run' first",
            inputs[0].display()
        )),
        false => Ok(files),
    }
}

/// Reads a file's text: an array of records, or one record a line.
fn parse(text: &str) -> Result<Vec<Record>, serde_json::Error> {
    if text.trim_start().starts_with('[') {
        return serde_json::from_str(text);
    }
    serde_json::Deserializer::from_str(text)
        .into_iter()
        .collect()
}

/// Reads all files; scenarios come out in the order in which they appear.
pub fn load(files: &[PathBuf]) -> Result<Vec<Scenario>, String> {
    let mut scenarios = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).map_err(|e| {
            format!(
                "{}: {e}; run the scenario that makes it ('make run')",
                file.display()
            )
        })?;
        let records = parse(&text).map_err(|e| {
            format!(
                "{}: not records: {e}; delete it and run its scenario again",
                file.display()
            )
        })?;
        add(&mut scenarios, file, records).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    match scenarios.is_empty() {
        true => {
            Err("the files hold no records: run 'make run' again and look at what it says".into())
        }
        false => Ok(scenarios),
    }
}

fn add(scenarios: &mut Vec<Scenario>, file: &Path, records: Vec<Record>) -> Result<(), String> {
    for record in records {
        // The name becomes a file's name.
        if record.scenario.is_empty()
            || record.scenario.contains('/')
            || record.scenario.starts_with('.')
        {
            return Err(format!("'{}' cannot be a scenario's name", record.scenario));
        }
        let scenario = entry(
            scenarios,
            |s| s.name == record.scenario,
            || Scenario {
                name: record.scenario.clone(),
                file: file.into(),
                ..Scenario::default()
            },
        );
        match record.value.clone() {
            Value::Text(text) if record.metric == "cwnd_over_time" => {
                scenario.cell(&record).windows = windows(&text)?;
            }
            Value::Text(text) => scenario.sentence(&record, &text),
            Value::Number(value) => scenario.number(&record, value),
        }
    }
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Scenarios out of a text.
    pub fn from_text(text: &str) -> Vec<Scenario> {
        let mut scenarios = Vec::new();
        add(
            &mut scenarios,
            Path::new("out/x.json"),
            parse(text).unwrap(),
        )
        .unwrap();
        scenarios
    }

    #[test]
    fn both_forms_are_read_and_order_is_kept() {
        let lines = r#"{"scenario":"T0","variant":"stock","flow":"rpc","metric":"p99","unit":"us","value":474.1}
{"scenario":"T0","variant":"nodelay","flow":"rpc","metric":"p99","unit":"us","value":20}
{"scenario":"T0","variant":"stock","flow":"rpc","metric":"p99","unit":"us","value":475}
{"scenario":"T0","variant":"-","flow":"-","metric":"meaning","unit":"text","value":"held"}
{"scenario":"T0","variant":"stock","flow":"rpc","metric":"note","unit":"text","value":"broke"}
{"scenario":"T0","variant":"stock","flow":"rpc","metric":"cc","unit":"text","value":"cubic"}
"#;
        let array = format!("[{}]", lines.trim().replace('\n', ","));
        for text in [lines, &array] {
            let scenarios = from_text(text);
            let [t0] = scenarios.as_slice() else { panic!() };
            assert_eq!(
                (t0.meaning.as_slice(), t0.notes.as_slice()),
                (&["held".into()][..], &["stock, rpc: broke".into()][..])
            );
            let [rpc] = t0.flows.as_slice() else { panic!() };
            let variants: Vec<&str> = rpc.cells.iter().map(|c| &*c.variant).collect();
            assert_eq!(variants, ["stock", "nodelay"]);
            assert_eq!(rpc.cells[0].get("p99"), Some(475.0));
        }
    }

    #[test]
    fn what_is_no_record_is_refused() {
        assert!(parse("[{\"scenario\":\"T0\"}]").is_err());
        assert!(parse("{\"value\":").is_err());
        let slash =
            r#"[{"scenario":"../x","variant":"","flow":"","metric":"","unit":"","value":1}]"#;
        assert!(add(&mut Vec::new(), Path::new("x"), parse(slash).unwrap()).is_err());
        assert!(
            windows("0:10 7:x").is_err() && windows("7:1 3:1").is_err() && windows("-1:2").is_err()
        );
        assert!(
            load(&["no/such/file.json".into()])
                .unwrap_err()
                .contains("make run")
        );
        assert!(
            files(&["/proc/self/task".into()])
                .unwrap_err()
                .contains("make run")
        );
    }
}
