// SPDX-License-Identifier: GPL-2.0

//! Tables and tail plots out of the lab's records; the records are all it knows.

mod compare;
mod cwnd;
mod format;
#[cfg(test)]
mod fuzz_records;
mod header;
mod html;
mod plot;
mod records;
mod svg;
mod sweep;
mod table;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Tables and tail plots out of the lab's records

Usage: report [--no-svg | --svg DIR] [FILE|DIR]...
       report --html DIR        DIR/report.html of its records
       report --compare A B     what differs between the records of two folders

  FILE      records: a JSON array, or one record a line
  DIR       all *.json files there [default: out]
  --svg DIR where to write SCENARIO.svg [default: beside the records]
  --no-svg  only the tables
  -h, --help, -V, --version

A record is {\"scenario\",\"variant\",\"flow\",\"metric\",\"unit\",\"value\"}. In a scenario the variant
that comes first is the control: ratios are to it. Records named `meaning`, `note` and
`void` (unit `text`) are sentences for the table.

Exit status: 0; 1 when there are no records or they cannot be read; 2 for a bad command line.
--compare: 0 the same, 1 changed, 2 bad input.
";

/// What the command line asks for.
struct Args {
    inputs: Vec<PathBuf>,
    /// Where plots go; `None` is beside the records.
    svg: Option<PathBuf>,
    plots: bool,
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args {
        inputs: Vec::new(),
        svg: None,
        plots: true,
    };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--no-svg" => args.plots = false,
            "--svg" => args.svg = Some(words.next().ok_or("--svg needs a folder")?.into()),
            _ if word.starts_with('-') => {
                return Err(format!("unknown option {word}; see report --help"));
            }
            _ => args.inputs.push(word.into()),
        }
    }
    if args.inputs.is_empty() {
        args.inputs.push("out".into());
    }
    Ok(args)
}

fn run(args: &Args) -> Result<(), String> {
    let files = records::files(&args.inputs)?;
    let scenarios = records::load(&files)?;
    // A reader that has gone away is no reason to panic.
    _ = std::io::stdout().write_all(table::tables(&scenarios).as_bytes());
    if !args.plots {
        return Ok(());
    }
    for scenario in &scenarios {
        let beside = scenario.file.parent().unwrap_or(Path::new("."));
        let folder = args.svg.as_deref().unwrap_or(beside);
        let mut drawings = vec![
            (plot::plot(scenario), String::new()),
            (sweep::sweep(scenario), "-by-n".into()),
        ];
        for regime in cwnd::regimes(scenario) {
            // A regime becomes part of a file's name.
            let ending = regime.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
            drawings.push((Some(cwnd::drawing(scenario, regime)), format!("-{ending}")));
        }
        for (drawing, ending) in drawings {
            let Some(drawing) = drawing else {
                continue;
            };
            let path = folder.join(format!("{}{ending}.svg", scenario.name));
            fs::write(&path, drawing)
                .map_err(|e| format!("cannot write {}: {e}", path.display()))?;
            println!("plot: {}", path.display());
        }
    }
    Ok(())
}

fn usage(error: &str) -> ExitCode {
    eprintln!("report: {error}");
    ExitCode::from(2)
}

/// Makes the page beside the records.
fn html(folder: &Path) -> ExitCode {
    let path = folder.join("report.html");
    let made = records::files(&[folder.into()])
        .and_then(|files| records::load(&files))
        .and_then(|scenarios| {
            fs::write(&path, html::page(&scenarios, folder))
                .map_err(|e| format!("cannot write {}: {e}", path.display()))
        });
    match made {
        Ok(()) => {
            println!("report: {}", path.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("report: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compare(a: &Path, b: &Path) -> ExitCode {
    match compare::compare(a, b) {
        Ok((table, changed)) => {
            _ = std::io::stdout().write_all(table.as_bytes());
            ExitCode::from(u8::from(changed))
        }
        Err(error) => usage(&error),
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("-h" | "--help") => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Some("-V" | "--version") => {
            println!("report {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    if let [option, folders @ ..] = words.as_slice() {
        match (option.as_str(), folders) {
            ("--html", [folder]) => return html(Path::new(folder)),
            ("--compare", [a, b]) => return compare(Path::new(a), Path::new(b)),
            ("--html", _) => return usage("--html needs one folder"),
            ("--compare", _) => return usage("--compare needs two folders: make compare A=… B=…"),
            _ => {}
        }
    }
    let args = match parse(words.into_iter()) {
        Ok(args) => args,
        Err(error) => {
            eprintln!("report: {error}");
            return ExitCode::from(2);
        }
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("report: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_its_command_line() {
        let words = |text: &str| parse(text.split_whitespace().map(String::from));
        assert_eq!(words("").unwrap().inputs, [PathBuf::from("out")]);
        let args = words("a.json --svg x b").unwrap();
        assert_eq!((args.inputs.len(), args.svg), (2, Some("x".into())));
        assert!(!words("--no-svg").unwrap().plots);
        assert!(words("--svg").is_err() && words("--colour").is_err());
    }
}
