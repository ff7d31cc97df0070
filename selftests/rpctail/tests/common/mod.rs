// SPDX-License-Identifier: GPL-2.0

//! Runs the program's two ends on loopback.

#![allow(dead_code, reason = "each test file uses its part of this")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// The program.
pub fn rpctail() -> Command {
    Command::new(env!("CARGO_BIN_EXE_rpctail"))
}

/// A server on a port that the kernel picked; it goes when this does.
pub struct Server {
    pub child: Option<Child>,
    pub address: String,
}

impl Server {
    pub fn start(args: &[&str]) -> Self {
        let mut command = rpctail();
        command
            .args(["server", "--listen", "127.0.0.1:0"])
            .args(args);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("listening on ")
            .expect(&line)
            .to_owned();
        let child = Some(child);
        Self { child, address }
    }

    /// One that listens already and is no rpctail.
    pub fn stranger(address: String) -> Self {
        let child = None;
        Self { child, address }
    }

    /// Runs a client with the records on its standard output.
    pub fn client(&self, args: &[&str]) -> Run {
        let output = rpctail()
            .args([
                "client",
                "--connect",
                &self.address,
                "--json",
                "-",
                "--warmup",
                "100ms",
            ])
            .args(args)
            .output()
            .unwrap();
        Run::new(output)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            _ = child.kill();
            _ = child.wait();
        }
    }
}

/// What a client said.
pub struct Run {
    pub code: i32,
    pub stderr: String,
    pub records: Vec<Value>,
}

impl Run {
    fn new(output: Output) -> Self {
        let records = match output.stdout.as_slice() {
            [] => Vec::new(),
            json => serde_json::from_slice(json).unwrap(),
        };
        let stderr = String::from_utf8(output.stderr).unwrap();
        Self {
            code: output.status.code().unwrap(),
            stderr,
            records,
        }
    }

    /// A flow's record of that name.
    pub fn value(&self, flow: &str, metric: &str) -> &Value {
        let wanted = |r: &&Value| r["flow"] == flow && r["metric"] == metric;
        let record = self.records.iter().find(wanted);
        &record.unwrap_or_else(|| panic!("no {flow} {metric}; {}", self.stderr))["value"]
    }

    /// The same as a number.
    pub fn number(&self, flow: &str, metric: &str) -> f64 {
        self.value(flow, metric).as_f64().unwrap()
    }
}

/// A path for a file that a test writes.
pub fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}
