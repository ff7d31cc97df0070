// SPDX-License-Identifier: GPL-2.0

//! What a user types, what a peer sends and what is written to files: numbers with units, patterns,
//! flows, the conversation, records, CSV and `.hgrm`.

use std::io::{self, Read};

use fuzz::{check, corpus};
use proptest::{collection::vec, prelude::*};
use rpctail::cli::flow_spec;
use rpctail::client::Outcome;
use rpctail::flow::Flow;
use rpctail::hgrm::hgrm;
use rpctail::http::Replies;
use rpctail::pattern::{MAX_MESSAGE, Pattern};
use rpctail::records::{Value, csv, json, records};
use rpctail::stats::{Stats, Times};
use rpctail::tcp_info::Info;
use rpctail::units::{self, SECOND};
use rpctail::wire::{self, EndOptions, Farewell, Hello, Kind, MAX_LINE, Welcome};

const CASES: u32 = 1024;

/// A number with a unit, or nearly so.
fn quantity() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        any::<u64>().prop_map(|n| n.to_string()),
        "[0-9]{1,6}",
        "[0-9]{0,4}\\.[0-9]{0,4}",
        "[-+0-9.e]{0,6}",
    ];
    let unit = "|B|k|K|kB|M|MB|G|Ki|KiB|Mi|Gi|ns|us|µs|ms|s|m|min|/s|k/s|\\PC{0,3}";
    (number, unit).prop_map(|(number, unit)| number + &unit)
}

#[test]
fn fuzz_units() {
    check(corpus!("units"), 2 * CASES, quantity(), |text| {
        for parse in [units::bytes, units::duration, units::rate] {
            if let Err(error) = parse(&text) {
                prop_assert!(error.contains(&format!("'{text}'")), "{}", error);
            }
        }
        if let Ok(ns) = units::duration(&text) {
            prop_assert_eq!(units::duration(&units::plain_time(ns)), Ok(ns));
            prop_assert!(!units::human_time(ns).is_empty());
            // The server's longest sum: the clock, and nine of the times between two looks.
            prop_assert!(ns.checked_mul(10).is_some(), "{} ns overflows in a sum", ns);
        }
        Ok(())
    });
}

/// Whole numbers are exact, to the last one that fits.
#[test]
fn fuzz_bytes() {
    let unit = prop::sample::select(vec![
        ("", 1u128),
        ("K", 1000),
        ("Mi", 1 << 20),
        ("G", 1_000_000_000),
    ]);
    check(
        corpus!("bytes"),
        CASES,
        (any::<u64>(), 0u32..64, unit),
        |(n, shift, (unit, scale))| {
            let n = n >> shift;
            let expected = u64::try_from(u128::from(n) * scale).ok();
            prop_assert_eq!(units::bytes(&format!("{n}{unit}")).ok(), expected);
            Ok(())
        },
    );
}

fn refused_or_sound(text: &str, mss: u32) -> TestCaseResult {
    match text.parse::<Pattern>() {
        Err(error) => prop_assert!(error.contains(&format!("pattern '{text}'")), "{}", error),
        Ok(pattern) => {
            prop_assert_eq!(pattern.to_string(), text);
            match pattern.resolve(mss) {
                Ok(writes) => {
                    prop_assert!(!writes.is_empty() && writes.iter().all(|n| *n > 0));
                    prop_assert!(writes.iter().map(|n| *n as u64).sum::<u64>() <= MAX_MESSAGE);
                }
                Err(error) => prop_assert!(error.contains(text), "{}", error),
            }
        }
    }
    Ok(())
}

type TestCaseResult = Result<(), TestCaseError>;

#[test]
fn fuzz_pattern_text() {
    let part = "[0-9]{1,5}|mss|mss-[0-9]{1,19}|\\(|\\)|\\+|[0-9]{1,5}x|K|Mi|-|\\PC";
    let text = vec(part, 0..8).prop_map(|parts| parts.concat());
    check(
        corpus!("pattern_text"),
        2 * CASES,
        (text, any::<u32>()),
        |(text, mss)| refused_or_sound(&text, mss),
    );
}

/// A pattern that means something means that.
#[test]
fn fuzz_pattern() {
    let write = (1u64..4, 1u64..100_000, 0u64..3, -20i64..20, any::<bool>());
    check(
        corpus!("pattern"),
        CASES,
        (vec(write, 1..6), 100u32..65_000),
        |(parts, mss)| {
            let (mut words, mut expected) = (Vec::new(), Vec::new());
            for (count, bytes, mul, add, follows) in parts {
                let (size, one) = match (follows && mul > 0, add) {
                    (false, _) => (bytes.to_string(), bytes),
                    (true, 0) => (format!("({mul}mss)"), mul * u64::from(mss)),
                    (true, add) => (
                        format!("({mul}mss{add:+})"),
                        (mul * u64::from(mss)).checked_add_signed(add).unwrap(),
                    ),
                };
                words.push(format!("{count}x{size}"));
                expected.extend(std::iter::repeat_n(one as usize, count as usize));
            }
            let text = words.join("+");
            let pattern: Pattern = text.parse().map_err(TestCaseError::fail)?;
            prop_assert_eq!(pattern.resolve(mss), Ok(expected), "{}", text);
            refused_or_sound(&text, mss)
        },
    );
}

/// Options as they are typed after `--flow`: refused by name, or echoed so that the echo means the
/// same.
#[test]
fn fuzz_flow() {
    let end = "|=none|=client|=server|=both|=x";
    let option = prop_oneof![
        "name=[a-z]{1,4}|mode=(open|closed|stream|barrier)|arrivals=(constant|poisson)",
        ("(nodelay|nodelay-undone|cork|cork-held|more)", end).prop_map(|(key, end)| key + &end),
        ("rate=|write=|sndbuf=", quantity()).prop_map(|(key, n)| key + &n),
        "(conns|depth|warmup-exchanges)=[0-9]{1,6}|(cc|server-cc)=[a-z_]{1,8}",
        "(request|reply)=([0-9]{1,4}|mss|\\(mss\\+1\\))(\\+[0-9]{1,3})?",
        "[a-z=-]{0,6}|\\PC{0,6}",
    ];
    check(corpus!("flow"), CASES, vec(option, 0..5), |options| {
        let text = options.join(",");
        let args = match flow_spec(&text) {
            Ok(args) => args,
            Err(error) => {
                prop_assert!(error.contains(&format!("--flow '{text}'")), "{}", error);
                prop_assert!(!error.contains('\n') || text.contains('\n'), "{}", error);
                return Ok(());
            }
        };
        match Flow::new(args) {
            Err(error) => prop_assert!(
                error.contains("flow '") || error.contains("pattern '"),
                "{}",
                error
            ),
            Ok(flow) => {
                let echo = flow.to_string();
                let again = flow_spec(&echo)
                    .and_then(Flow::new)
                    .map_err(TestCaseError::fail)?;
                prop_assert_eq!(again.to_string(), echo.clone());
                // A stream has no use for the options of requests, and does not echo them.
                prop_assert!(
                    flow.is_stream() || format!("{again:?}") == format!("{flow:?}"),
                    "{}",
                    echo
                );
            }
        }
        Ok(())
    });
}

fn hello() -> impl Strategy<Value = Hello> {
    let text = || prop_oneof!["[a-z0-9+x()]{0,20}", any::<String>()];
    let kind = prop::sample::select(vec![Kind::Rpc, Kind::Stream, Kind::Marks]);
    let options = (
        any::<[bool; 5]>(),
        prop::option::of(text()),
        any::<Option<u64>>(),
    )
        .prop_map(|(b, cc, sndbuf)| EndOptions {
            nodelay: b[0],
            nodelay_undone: b[1],
            cork: b[2],
            cork_held: b[3],
            more: b[4],
            cc,
            sndbuf,
        });
    (
        any::<u32>(),
        kind,
        any::<u32>(),
        any::<u64>(),
        text(),
        options,
    )
        .prop_map(|(version, kind, session, request, reply, options)| Hello {
            version,
            kind,
            session,
            request,
            reply,
            options,
        })
}

/// A stream that gives its bytes in small pieces, and is interrupted between them.
struct Pieces<'a> {
    rest: &'a [u8],
    interrupted: bool,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        self.rest.read(into)
    }
}

/// Messages arrive as they were sent, not a byte more is read, and one that is cut off is refused.
#[test]
fn fuzz_protocol() {
    let info =
        (any::<[u32; 3]>(), any::<u64>(), any::<[Option<u32>; 2]>()).prop_map(|(n, bytes, o)| {
            Info {
                mss: n[0],
                cwnd: n[1],
                retrans: n[2],
                bytes_acked: bytes,
                ce: o[0],
                rto: o[1],
            }
        });
    let cut = any::<prop::sample::Index>();
    check(
        corpus!("protocol"),
        CASES,
        (hello(), info, vec(any::<u8>(), 0..9), cut),
        |(hello, info, more, cut)| {
            let line = wire::line(&hello);
            prop_assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
            let bytes = [&line[..], &more].concat();
            let mut stream = Pieces {
                rest: &bytes,
                interrupted: false,
            };
            let back: Hello = wire::receive(&mut stream).map_err(TestCaseError::fail)?;
            prop_assert_eq!(stream.rest, more);
            prop_assert_eq!(format!("{back:?}"), format!("{hello:?}"));

            prop_assert!(wire::receive::<Hello>(&line[..cut.index(line.len())]).is_err());
            prop_assert!(wire::parse::<Hello>(&line[..cut.index(line.len() - 1)]).is_err());

            let last = Farewell {
                from: info,
                to: info,
                cwnd_min: info.cwnd,
            };
            let back: Farewell =
                wire::receive(&wire::line(&last)[..]).map_err(TestCaseError::fail)?;
            prop_assert_eq!(format!("{back:?}"), format!("{last:?}"));
            let first = Welcome {
                error: hello.options.cc,
                reply: hello.request,
                cc: hello.reply,
            };
            let back: Welcome =
                wire::receive(&wire::line(&first)[..]).map_err(TestCaseError::fail)?;
            prop_assert_eq!(format!("{back:?}"), format!("{first:?}"));
            Ok(())
        },
    );
}

/// A stranger is told so in one line, and no more is read than a line may be long.
#[test]
fn fuzz_stranger() {
    let near =
        (hello(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(hello, at, byte)| {
            let mut line = wire::line(&hello);
            let at = at.index(line.len());
            line[at] = byte;
            line
        });
    let long = (0usize..3 * MAX_LINE).prop_map(|n| vec![b' '; n]);
    check(
        corpus!("stranger"),
        CASES,
        prop_oneof![near, long, vec(any::<u8>(), 0..80)],
        |bytes| {
            let mut stream = bytes.as_slice();
            let answer = wire::receive::<Hello>(&mut stream);
            prop_assert!(bytes.len() - stream.len() <= MAX_LINE + 1);
            if let Err(error) = answer {
                let known = [
                    "is not rpctail's protocol",
                    "was closed",
                    "no end of the line",
                ];
                prop_assert!(known.iter().any(|k| error.contains(k)), "{}", error);
                prop_assert!(
                    error.chars().count() < 800 && !error.chars().any(char::is_control),
                    "{:?}",
                    error
                );
            }
            Ok(())
        },
    );
}

/// A reply, as a server may frame it, and whether it counts as one.
fn http_reply() -> impl Strategy<Value = (Vec<u8>, bool)> {
    let body = || vec(any::<u8>(), 0..200);
    let length = body().prop_map(|body| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        ([head.as_bytes(), &body].concat(), true)
    });
    let chunked =
        (vec(vec(any::<u8>(), 1..80), 0..4), any::<bool>()).prop_map(|(chunks, trailer)| {
            let mut out = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for chunk in chunks {
                out.extend(format!("{:x}\r\n", chunk.len()).bytes());
                out.extend(chunk);
                out.extend(b"\r\n");
            }
            out.extend(b"0\r\n");
            out.extend(if trailer {
                &b"A: b\r\n\r\n"[..]
            } else {
                b"\r\n"
            });
            (out, true)
        });
    let early = Just((
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".to_vec(),
        false,
    ));
    prop_oneof![length, chunked, early]
}

/// What `replies` makes of `bytes` that come in pieces of these sizes.
fn in_pieces(bytes: &[u8], pieces: &[usize]) -> (Result<u64, String>, u64) {
    let mut replies = Replies::default();
    let (mut rest, mut sum) = (bytes, 0);
    for size in pieces.iter().copied().chain([bytes.len()]) {
        let (piece, after) = rest.split_at(size.min(rest.len()));
        rest = after;
        match replies.arrived(piece) {
            Ok(n) => sum += n,
            Err(error) => return (Err(error), replies.last()),
        }
    }
    (Ok(sum), replies.last())
}

/// The ends of replies are seen, in whatever pieces they come; of what is no HTTP, the same is said.
#[test]
fn fuzz_http() {
    let near = (
        vec(http_reply(), 0..4),
        prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    );
    let pieces = vec(1usize..40, 0..30);
    check(
        corpus!("http"),
        CASES,
        (near, pieces),
        |((replies, damage), pieces)| {
            let mut bytes: Vec<u8> = replies
                .iter()
                .flat_map(|(bytes, _)| bytes.clone())
                .collect();
            let whole = replies.iter().filter(|(_, counts)| *counts).count() as u64;
            match damage {
                Some((at, byte)) if !bytes.is_empty() => {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
                _ => {
                    let (seen, last) = in_pieces(&bytes, &[]);
                    prop_assert_eq!(seen, Ok(whole));
                    let ends_whole = replies.last().filter(|(_, counts)| *counts);
                    if let Some((reply, _)) = ends_whole.filter(|_| whole == replies.len() as u64) {
                        prop_assert_eq!(last, reply.len() as u64);
                    }
                }
            }
            let (one, _) = in_pieces(&bytes, &[]);
            let (many, _) = in_pieces(&bytes, &pieces);
            if let Err(error) = &one {
                prop_assert!(!error.chars().any(char::is_control), "{:?}", error);
            }
            prop_assert_eq!(one, many);
            Ok(())
        },
    );
}

/// The fields of a line of CSV (RFC 4180), by a reader of our own.
fn fields(line: &str) -> Vec<String> {
    let (mut out, mut quoted, mut chars) = (vec![String::new()], false, line.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                out.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => out.push(String::new()),
            c => out.last_mut().unwrap().push(c),
        }
    }
    out
}

/// The files of a run hold what was measured, whatever it was called.
#[test]
fn fuzz_files() {
    let name = || prop_oneof![3 => "[A-Za-z0-9_.-]{1,9}", 1 => "[ ,\"a]{1,6}", 1 => "\\PC{0,6}"];
    let time = prop_oneof![1u64..1_000_000, any::<u64>()];
    let input = (
        name(),
        name(),
        vec(time, 0..200),
        any::<u32>(),
        prop::option::of(0.0..1.0f64),
        1u64..100 * SECOND,
    );
    check(
        corpus!("files"),
        CASES / 4,
        input,
        |(scenario, variant, times, count, fairness, duration)| {
            let mut stats = Stats {
                requests: count.into(),
                replies: count.into(),
                bytes: u64::from(count) * 1000,
                fairness,
                ..Stats::default()
            };
            times.iter().for_each(|ns| stats.latency.record(*ns));
            let outcome = Outcome {
                flow: flow_spec("rate=2,conns=2").and_then(Flow::new).unwrap(),
                stats,
                cc: ("dctcp".into(), "cubic".into()),
            };
            let all = records(&scenario, &variant, duration, &outcome);

            let back: Vec<serde_json::Value> = serde_json::from_str(&json(&all)).unwrap();
            prop_assert_eq!(back.len(), all.len());
            for (back, record) in back.iter().zip(&all) {
                prop_assert_eq!(back["scenario"].as_str(), Some(&*scenario));
                prop_assert_eq!(back["metric"].as_str(), Some(&*record.metric));
                match &record.value {
                    Value::Count(n) => prop_assert_eq!(back["value"].as_u64(), Some(*n)),
                    Value::Number(n) => prop_assert_eq!(back["value"].as_f64(), Some(*n)),
                    Value::Text(text) => prop_assert_eq!(back["value"].as_str(), Some(&**text)),
                }
            }

            let text = csv(&all);
            let us = all.iter().filter(|r| r.unit == "us").count();
            prop_assert_eq!(text.lines().count(), 1 + us, "{}", text);
            for line in text.lines().skip(1) {
                let fields = fields(line);
                prop_assert_eq!(fields.len(), 5, "{}", line);
                prop_assert_eq!((&fields[0], &fields[1]), (&scenario, &variant));
                prop_assert!(fields[4].parse::<f64>().is_ok(), "{}", line);
            }
            histogram(&outcome.stats.latency, &times)
        },
    );
}

/// A `.hgrm` goes up to everything that was counted, and its greatest time.
fn histogram(kept: &Times, times: &[u64]) -> TestCaseResult {
    let text = hgrm(kept);
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(2)
        .filter(|l| !l.starts_with('#'))
        .map(|l| l.split_whitespace().map(|w| w.parse().unwrap()).collect())
        .collect();
    prop_assert!(
        rows.windows(2)
            .all(|w| w[0][..3].iter().zip(&w[1][..3]).all(|(a, b)| a <= b)),
        "{}",
        text
    );
    let (Some(last), Some(longest)) = (rows.last(), times.iter().max()) else {
        return Ok(());
    };
    prop_assert_eq!(last[2], times.len() as f64);
    prop_assert_eq!(kept.max(), *longest);
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    // Three significant digits, up to an hour.
    for (quantile, at) in [
        (0.0, 0),
        (0.5, (times.len() - 1) / 2),
        (1.0, times.len() - 1),
    ] {
        let (found, exact) = (kept.quantile(quantile) as f64, sorted[at] as f64);
        prop_assert!(
            exact > 3.6e12 || (found - exact).abs() <= exact / 1000.0 + 1.0,
            "{} {}",
            found,
            exact
        );
    }
    Ok(())
}
