// SPDX-License-Identifier: GPL-2.0

//! `rpctail`: open-loop RPC load over TCP, and the tail of its latency.

use std::fs;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use rpctail::cli::{Cli, ClientArgs, Role};
use rpctail::server::Server;
use rpctail::{Result, client, flow, hgrm, records, table};

/// A run that measured something, but with broken connections or unanswered requests.
const EXIT_INCOMPLETE: u8 = 3;

fn main() -> ExitCode {
    let run = match Cli::parse().role {
        Role::Server(args) => Server::new(args).and_then(|server| {
            let address = server.address().map_err(|e| e.to_string())?;
            // Whoever started the server waits for this line.
            print(&format!("listening on {address}\n"));
            server.run().map(|()| ExitCode::SUCCESS)
        }),
        Role::Client(args) => measure(&args),
    };
    run.unwrap_or_else(|error| {
        eprintln!("rpctail: {error}");
        ExitCode::FAILURE
    })
}

/// Prints; a reader that has gone away is no reason to panic.
fn print(text: &str) {
    let mut out = std::io::stdout();
    _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn write(path: &str, text: &str) -> Result<()> {
    if path == "-" {
        print(text);
        return Ok(());
    }
    fs::write(path, text).map_err(|e| format!("cannot write {path}: {e}"))
}

fn measure(args: &ClientArgs) -> Result<ExitCode> {
    let flows = flow::flows(args)?;
    let stdout_is_data = [&args.json, &args.csv]
        .iter()
        .any(|p| p.as_deref() == Some("-"));
    let human = !args.quiet && !stdout_is_data;
    if human {
        print(&table::echo(args, &flows));
    }
    let outcomes = client::run(args, flows)?;
    let records: Vec<_> = outcomes
        .iter()
        .flat_map(|o| records::records(&args.scenario, &args.variant, args.duration, o))
        .collect();
    if let Some(path) = &args.json {
        write(path, &records::json(&records))?;
    }
    if let Some(path) = &args.csv {
        write(path, &records::csv(&records))?;
    }
    if let Some(prefix) = &args.hgrm {
        for outcome in outcomes.iter().filter(|o| !o.flow.is_stream()) {
            let name = format!("{prefix}.{}", outcome.flow.name);
            write(&format!("{name}.hgrm"), &hgrm::hgrm(&outcome.stats.latency))?;
            write(
                &format!("{name}.service.hgrm"),
                &hgrm::hgrm(&outcome.stats.service),
            )?;
        }
    }
    if human {
        print(&table::table(args.duration, &outcomes));
    }
    let complete = outcomes
        .iter()
        .all(|o| o.stats.errors == 0 && o.stats.unfinished == 0);
    if !complete {
        eprintln!(
            "rpctail: some connections broke or some requests had no reply; see errors and unfinished"
        );
    }
    Ok(if complete {
        ExitCode::SUCCESS
    } else {
        EXIT_INCOMPLETE.into()
    })
}
