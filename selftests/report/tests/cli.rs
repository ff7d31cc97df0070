// SPDX-License-Identifier: GPL-2.0

//! The program on files: what it writes, and what it says when there is nothing to read.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A fresh folder for one test.
fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn report(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_report"))
        .args(args)
        .output()
        .unwrap()
}

/// Two variants of one scenario.
fn records(scenario: &str) -> String {
    let mut out = Vec::new();
    for (variant, scale) in [("stock", 43_620.0), ("lowtail", 2_270.0)] {
        for metric in ["p50", "p99", "p99.9", "max"] {
            out.push(format!(
                r#"{{"scenario":"{scenario}","variant":"{variant}","flow":"rpc","metric":"{metric}","unit":"us","value":{scale}}}"#
            ));
        }
    }
    format!("[\n{}\n]\n", out.join(",\n"))
}

#[test]
fn a_folder_becomes_tables_and_plots() {
    let out = folder("report");
    fs::write(out.join("T1.json"), records("T1")).unwrap();
    fs::write(out.join("T0.json"), records("T0")).unwrap();
    fs::write(out.join("ignored.txt"), "not records").unwrap();
    let first = report(&[out.to_str().unwrap()]);
    let table = String::from_utf8(first.stdout).unwrap();
    assert!(first.status.success(), "{table}");
    assert!(
        table.find("T0").unwrap() < table.find("T1").unwrap(),
        "{table}"
    );
    assert!(
        table.contains("43.6 ms") && table.contains("0.05x"),
        "{table}"
    );
    let plot = fs::read(out.join("T0.svg")).unwrap();
    assert!(out.join("T1.svg").exists());
    // The same records give the same bytes.
    report(&[out.to_str().unwrap()]);
    assert_eq!(plot, fs::read(out.join("T0.svg")).unwrap());
}

#[test]
fn without_plots_nothing_is_written() {
    let out = folder("no-svg");
    let file = out.join("T0.json");
    fs::write(&file, records("T0")).unwrap();
    assert!(
        report(&["--no-svg", file.to_str().unwrap()])
            .status
            .success()
    );
    assert!(!out.join("T0.svg").exists());
}

#[test]
fn errors_say_what_to_do() {
    let out = folder("empty");
    let path = out.to_str().unwrap();
    let nothing = report(&[path]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(
        String::from_utf8(nothing.stderr)
            .unwrap()
            .contains("run 'make run' first")
    );
    fs::write(out.join("T0.json"), "[{\"scenario\":").unwrap();
    let cut = report(&[path]);
    assert_eq!(cut.status.code(), Some(1));
    let error = String::from_utf8(cut.stderr).unwrap();
    assert!(
        error.contains("T0.json: not records") && error.contains("run its scenario again"),
        "{error}"
    );
    assert_eq!(report(&["--colour"]).status.code(), Some(2));
}

#[test]
fn a_folder_becomes_a_page() {
    let out = folder("page");
    let path = out.to_str().unwrap();
    fs::write(out.join("T0.json"), records("T0")).unwrap();
    assert!(report(&["--html", path]).status.success());
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("43.6 ms") && page.contains("SCENARIOS=T1<"));
    fs::write(out.join("T1.json"), "[{").unwrap();
    let corrupt = report(&["--html", path]);
    assert_eq!(corrupt.status.code(), Some(1));
    assert!(
        String::from_utf8(corrupt.stderr)
            .unwrap()
            .contains("T1.json: not records")
    );
}

#[test]
fn two_runs_are_the_same_changed_or_no_runs() {
    let (a, b) = (folder("run-a"), folder("run-b"));
    let (a, b) = (a.as_path(), b.as_path());
    let compare = |b: &str| report(&["--compare", a.to_str().unwrap(), b]);
    assert_eq!(compare(b.to_str().unwrap()).status.code(), Some(2));
    fs::write(a.join("T0.json"), records("T0")).unwrap();
    fs::write(b.join("T0.json"), records("T0")).unwrap();
    assert_eq!(compare(b.to_str().unwrap()).status.code(), Some(0));
    fs::write(b.join("T0.json"), records("T0").replace("2270", "2271")).unwrap();
    let changed = compare(b.to_str().unwrap());
    assert_eq!(changed.status.code(), Some(1));
    let table = String::from_utf8(changed.stdout).unwrap();
    assert!(
        table.contains("T0: 4 changed, 0 within noise, 4 equal"),
        "{table}"
    );
    let missing = compare("no/such/folder");
    assert_eq!(missing.status.code(), Some(2));
    assert!(
        String::from_utf8(missing.stderr)
            .unwrap()
            .contains("no/such/folder: no folder")
    );
    assert_eq!(report(&["--compare", "x"]).status.code(), Some(2));
}
