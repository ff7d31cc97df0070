// SPDX-License-Identifier: GPL-2.0

//! `pgbatch`: times PostgreSQL queries that a client sends as two batches of messages.
//!
//! A driver that speaks the extended protocol may write Parse, Bind and Describe first and Execute
//! and Sync (15 bytes) after; the server answers only then. That is T2's query of 76 and 15 bytes.
//! The client itself sets TCP_NODELAY, as PostgreSQL's drivers do. Trust authentication only.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use hdrhistogram::Histogram;

/// The longest time the histogram tells apart (ns): a minute.
const LONGEST: u64 = 60_000_000_000;

/// A PostgreSQL query in two batches, again and again, and the time to each answer
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The server, or the forwarder in front of it
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:5432")]
    connect: String,

    /// Queries that are measured
    #[arg(long, value_name = "N", default_value_t = 200)]
    queries: u32,

    /// Queries before them
    #[arg(long, value_name = "N", default_value_t = 64)]
    warmup: u32,

    /// What a driver does between its two writes takes that long (µs); without a pause one
    /// CPU would run the forwarder only after both
    #[arg(long, value_name = "MICROSECONDS", default_value_t = 50)]
    gap: u64,

    /// User name
    #[arg(long, value_name = "NAME", default_value = "postgres")]
    user: String,

    /// Name of the scenario in the records
    #[arg(long, value_name = "NAME", default_value = "T2")]
    scenario: String,

    /// Name of the variant in the records
    #[arg(long, value_name = "NAME", default_value = "default")]
    variant: String,
}

/// A message of the frontend: a letter, a length that counts itself, the body.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("our messages are short");
    let mut out = vec![kind];
    out.extend(length.to_be_bytes());
    out.extend(body);
    out
}

/// The two batches of `SELECT $1::int4 + 1` with the parameter 41.
fn batches() -> [Vec<u8>; 2] {
    let parse = message(b'P', b"\0SELECT $1::int4 + 1\0\0\0");
    // Portal, statement, no formats, one parameter of two bytes, one result format: text.
    let bind = message(b'B', b"\0\0\0\0\0\x01\0\0\0\x0241\0\x01\0\0");
    let describe = message(b'D', b"P\0");
    let execute = message(b'E', b"\0\0\0\0\0");
    let sync = message(b'S', b"");
    [[parse, bind, describe].concat(), [execute, sync].concat()]
}

/// Reads messages of the backend up to ReadyForQuery; an ErrorResponse is an error.
fn until_ready(stream: &mut impl Read) -> io::Result<u32> {
    let mut rows = 0;
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; length.saturating_sub(4) as usize];
        stream.read_exact(&mut body)?;
        match head[0] {
            b'Z' => return Ok(rows),
            b'D' => rows += 1,
            b'R' if body != [0; 4] => {
                return Err(io::Error::other(
                    "the server wants a password; set up trust",
                ));
            }
            b'E' => {
                return Err(io::Error::other(
                    String::from_utf8_lossy(&body).into_owned(),
                ));
            }
            _ => {}
        }
    }
}

fn query(stream: &mut TcpStream, batches: &[Vec<u8>; 2], gap: Duration) -> io::Result<()> {
    stream.write_all(&batches[0])?;
    thread::sleep(gap);
    stream.write_all(&batches[1])?;
    match until_ready(&mut io::BufReader::new(stream))? {
        1 => Ok(()),
        rows => Err(io::Error::other(format!("{rows} rows instead of one"))),
    }
}

/// One record of the project's, a line.
fn record(out: &mut String, args: &Args, metric: &str, unit: &str, value: f64) {
    let Args {
        scenario, variant, ..
    } = args;
    _ = writeln!(
        out,
        r#"{{"scenario":"{scenario}","variant":"{variant}","flow":"query","metric":"{metric}","unit":"{unit}","value":{value}}}"#
    );
}

fn run(args: &Args) -> io::Result<String> {
    let mut stream = TcpStream::connect(&args.connect)?;
    stream.set_nodelay(true)?;
    let startup = [
        b"\0\x03\0\0user\0",
        args.user.as_bytes(),
        b"\0database\0template1\0\0",
    ]
    .concat();
    let length = u32::try_from(startup.len() + 4).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes()[..], &startup].concat())?;
    until_ready(&mut stream)?;

    let mut times = Histogram::<u64>::new_with_bounds(1, LONGEST, 3).map_err(io::Error::other)?;
    let (batches, gap) = (batches(), Duration::from_micros(args.gap));
    for i in 0..args.warmup + args.queries {
        let start = Instant::now();
        query(&mut stream, &batches, gap)?;
        if i >= args.warmup {
            times.saturating_record(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
    }
    stream.write_all(&message(b'X', b""))?;

    let mut out = String::new();
    for (name, q) in [
        ("p50", 0.5),
        ("p75", 0.75),
        ("p90", 0.9),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("max", 1.0),
    ] {
        let ns = times.value_at_quantile(q).min(times.max());
        record(&mut out, args, name, "us", ns as f64 / 1e3);
    }
    record(&mut out, args, "replies", "count", f64::from(args.queries));
    Ok(out)
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(records) => {
            print!("{records}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("pgbatch: {}: {error}", args.connect);
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batches_are_like_the_public_ones() {
        let [first, second] = batches();
        // T2's were 76 and 15 bytes; the second is the same, Execute and Sync.
        assert_eq!((first.len(), second.len()), (56, 15));
        assert_eq!(second[0], b'E');
        assert_eq!(&second[10..], b"S\0\0\0\x04");
    }

    #[test]
    fn answers_end_at_ready() {
        let answer = [
            message(b'1', b""),
            message(b'D', b"\0\0"),
            message(b'Z', b"I"),
        ]
        .concat();
        assert_eq!(until_ready(&mut &answer[..]).unwrap(), 1);
        let error = message(b'E', b"SERROR\0Mno\0\0");
        assert!(until_ready(&mut &error[..]).is_err());
        let password = message(b'R', &[0, 0, 0, 3]);
        assert!(until_ready(&mut &password[..]).is_err());
    }
}
