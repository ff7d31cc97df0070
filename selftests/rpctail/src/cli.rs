// SPDX-License-Identifier: GPL-2.0

//! The command line: what can be asked for, and the help that says so.

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::pattern::Pattern;
use crate::schedule::Arrivals;
use crate::{Result, http, units};

/// The port used when an address names none.
pub const PORT: u16 = 7717;

const EXAMPLES: &str = "\
Examples:
  Two writes per reply with TCP_NODELAY, 10000 requests a second over 128 connections:
    rpctail server
    rpctail client --connect 10.0.0.2 --rate 10k --conns 128 \\
        --request 100 --reply 3091+5 --nodelay

  A stream, back-to-back 1 MB RPCs and back-to-back 10 KB RPCs from one sender:
    rpctail client --connect 10.0.0.2 --cc dctcp --duration 10s \\
        --flow name=stream,mode=stream \\
        --flow name=1MB,request=1M,reply=1 --flow name=10KB,request=10K,reply=1

  An incast of 3000-byte replies from two servers, 100 rounds a second:
    rpctail client --connect 10.0.0.2 --connect 10.0.0.3 --mode barrier \\
        --conns 16 --rate 100 --reply 3000

  A web server, 500 GETs a second over 8 connections:
    rpctail client --connect 10.0.0.2:8080 --http /reply --rate 500 --conns 8";

const PATTERNS: &str = "\
Patterns (--request, --reply): the bytes of each write, joined by '+':
  3096          one write            3091+5      two writes, large then small
  3x500         three writes         (mss+1)     one write of the MSS and a byte
  mss, mss-1, (2mss+1): sizes that follow the sender's MSS
Sizes take K, M, G (powers of 1000) and Ki, Mi, Gi; durations ns, us, ms, s, m.

Latency is counted from the moment a request was meant to be sent, so a stalled
server shows in every request that it held up. Service time, kept beside it, is
counted from the moment the request was sent. Loss probes are in no field of
tcp_info: read TCPLossProbes from nstat.";

/// Open-loop RPC load over TCP, and the tail of its latency
#[derive(Parser, Debug)]
#[command(name = "rpctail", version, after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{PATTERNS}"))]
pub struct Cli {
    /// Which end this is.
    #[command(subcommand)]
    pub role: Role,
}

/// The two ends.
#[derive(Subcommand, Debug)]
pub enum Role {
    /// Answer requests; one server serves any number of clients of any kind
    Server(ServerArgs),
    /// Make the load and measure it
    #[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{PATTERNS}"))]
    Client(Box<ClientArgs>),
}

/// Options of the server.
#[derive(Args, Clone, Debug)]
pub struct ServerArgs {
    /// Address to listen on [port: 7717; 0 picks one and prints it]
    #[arg(long, short, value_name = "ADDR[:PORT]", default_value = "[::]:7717")]
    pub listen: String,

    /// Congestion control of the listening socket, hence of what it accepts
    #[arg(long, value_name = "NAME")]
    pub cc: Option<String>,

    /// Exit when all connections are closed, once there were any
    #[arg(long)]
    pub once: bool,

    /// Fault: stop for DURATION at every EVERY-th request (to see what a stall looks like)
    #[arg(long, value_name = "EVERY:DURATION", value_parser = stall)]
    pub stall: Option<Stall>,

    /// Least time between two looks at a connection's tcp_info (0: never)
    #[arg(long, value_name = "DURATION", value_parser = units::duration, default_value = "1ms")]
    pub sample: u64,
}

/// A pause at every n-th request.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// Every how many requests.
    pub every: u64,
    /// For how long (ns).
    pub ns: u64,
}

fn stall(text: &str) -> Result<Stall> {
    let bad = || format!("'{text}': expected EVERY:DURATION, as in 1000:200ms");
    let (every, ns) = text.split_once(':').ok_or_else(bad)?;
    let every = every.parse().ok().filter(|n| *n > 0).ok_or_else(bad)?;
    Ok(Stall {
        every,
        ns: units::duration(ns)?,
    })
}

/// A scenario's name becomes a file's name, in the report.
fn scenario(text: &str) -> Result<String> {
    if text.is_empty() || text.starts_with('.') || text.contains('/') {
        return Err(
            "a scenario's name is not empty, has no '/' and does not begin with '.'".into(),
        );
    }
    Ok(text.to_owned())
}

/// Options of the client.
#[derive(Args, Clone, Debug)]
pub struct ClientArgs {
    /// Server to connect to; repeated: a flow's connections take turns among the servers
    #[arg(long, short, value_name = "ADDR[:PORT]", required = true)]
    pub connect: Vec<String>,

    /// Local address to connect from
    #[arg(long, value_name = "ADDR")]
    pub bind: Option<std::net::IpAddr>,

    /// How long to try while nobody listens yet
    #[arg(long, value_name = "DURATION", value_parser = units::duration, default_value = "5s")]
    pub wait: u64,

    /// How long to measure
    #[arg(long, short, value_name = "DURATION", value_parser = units::duration, default_value = "10s")]
    pub duration: u64,

    /// Full load before the measurement, after the warm-up exchanges
    #[arg(long, value_name = "DURATION", value_parser = units::duration, default_value = "1s")]
    pub warmup: u64,

    /// Load that goes on after the measurement, so that other clients can finish theirs under it
    #[arg(long, value_name = "DURATION", value_parser = units::duration, default_value = "0s")]
    pub cooldown: u64,

    /// How long to wait for late replies after the load
    #[arg(long, value_name = "DURATION", value_parser = units::duration, default_value = "5s")]
    pub drain: u64,

    /// Time between two looks at tcp_info, connection after connection (0: only before and after)
    #[arg(long, value_name = "DURATION", value_parser = units::duration, default_value = "1ms")]
    pub sample: u64,

    /// Seed of whatever is random (Poisson arrivals)
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "a doc comment here would replace the flow options' heading"
    )]
    pub flow: FlowArgs,

    /// A flow of its own, repeatable: KEY=VALUE pairs of the flow options, joined by commas;
    /// what it leaves out comes from the flow options on the command line
    #[arg(long = "flow", value_name = "KEY=VALUE,...")]
    pub flows: Vec<String>,

    /// Name of the scenario in the records
    #[arg(
        long,
        value_name = "NAME",
        value_parser = scenario,
        default_value = "rpctail",
        help_heading = "Output"
    )]
    pub scenario: String,

    /// Name of the variant in the records
    #[arg(
        long,
        value_name = "NAME",
        default_value = "default",
        help_heading = "Output"
    )]
    pub variant: String,

    /// Write the records there ('-': standard output, instead of the table)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<String>,

    /// Write PREFIX.FLOW.hgrm and PREFIX.FLOW.service.hgrm (values in µs)
    #[arg(long, value_name = "PREFIX", help_heading = "Output")]
    pub hgrm: Option<String>,

    /// Write the percentiles of every flow there as CSV ('-': standard output, instead of the table)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub csv: Option<String>,

    /// No table and no progress
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

/// How a flow makes its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Requests at a constant rate, whatever the replies do (default with --rate)
    Open,
    /// The next request when the reply is there: back to back (default without --rate)
    Closed,
    /// One-way data as fast as it goes
    Stream,
    /// All connections at once, and again when the last reply is there (incast); with --rate,
    /// that many rounds a second
    Barrier,
}

/// Which end an option is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Who {
    /// Neither end
    #[default]
    None,
    /// The end that sends requests
    Client,
    /// The end that sends replies
    Server,
    /// Both ends
    Both,
}

impl Who {
    /// Whether the client's end is meant.
    pub fn client(self) -> bool {
        matches!(self, Who::Client | Who::Both)
    }

    /// Whether the server's end is meant.
    pub fn server(self) -> bool {
        matches!(self, Who::Server | Who::Both)
    }
}

/// Options that a flow can have; one that is not given falls back to the next more general place.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Flow options (also the keys of --flow)")]
pub struct FlowArgs {
    /// Name in the records [default: rpc, or the mode's name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// What makes the load [default: open with --rate, closed without]
    #[arg(long, value_enum)]
    pub mode: Option<Mode>,

    /// Requests a second over all connections of the flow (barrier: rounds a second)
    #[arg(long, value_name = "N", value_parser = units::rate)]
    pub rate: Option<u64>,

    /// How the requests of an open flow are spread over time [default: constant]
    #[arg(long, value_enum)]
    pub arrivals: Option<Arrivals>,

    /// Connections [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub conns: Option<u32>,

    /// Requests on their way on one connection at a time (pipelining) [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub depth: Option<u32>,

    /// The writes of a request [default: 100]
    #[arg(long, value_name = "PATTERN")]
    pub request: Option<Pattern>,

    /// The writes of a reply [default: 100]
    #[arg(long, value_name = "PATTERN")]
    pub reply: Option<Pattern>,

    /// Ask a web server for PATH (HTTP/1.1 GET on kept connections, no rpctail at the other end;
    /// port 80 unless --connect names one); replies end by Content-Length or chunked
    #[arg(long, value_name = "PATH", value_parser = http::path)]
    pub http: Option<String>,

    /// Bytes of one write of a stream [default: 64Ki]
    #[arg(long, value_name = "BYTES", value_parser = units::bytes)]
    pub write: Option<u64>,

    /// Set TCP_NODELAY at that end: none, client, server or both [without a value: both]
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "both", value_name = "END", hide_possible_values = true)]
    pub nodelay: Option<Who>,

    /// Set TCP_NODELAY at that end and take it back before the load [END as above]
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "both", value_name = "END", hide_possible_values = true)]
    pub nodelay_undone: Option<Who>,

    /// Set TCP_CORK before a message and clear it after [END as above]
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "both", value_name = "END", hide_possible_values = true)]
    pub cork: Option<Who>,

    /// Set TCP_CORK and never clear it [END as above]
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "both", value_name = "END", hide_possible_values = true)]
    pub cork_held: Option<Who>,

    /// Give MSG_MORE with all writes of a message but the last [END as above]
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "both", value_name = "END", hide_possible_values = true)]
    pub more: Option<Who>,

    /// Congestion control of the client's end
    #[arg(long, value_name = "NAME")]
    pub cc: Option<String>,

    /// Congestion control of the server's end
    #[arg(long, value_name = "NAME")]
    pub server_cc: Option<String>,

    /// SO_SNDBUF of both ends [default: the kernel's autotuning]
    #[arg(long, value_name = "BYTES", value_parser = units::bytes)]
    pub sndbuf: Option<u64>,

    /// Back-to-back exchanges on each connection before the load: receivers delay ACKs only
    /// after the first 16 or so [default: 32]
    #[arg(long, value_name = "N")]
    pub warmup_exchanges: Option<u32>,
}

/// A parser for the text after `--flow`.
#[derive(Parser, Debug)]
#[command(name = "--flow", no_binary_name = true, disable_help_flag = true)]
struct Spec {
    #[command(flatten)]
    flow: FlowArgs,
}

/// Parses `KEY=VALUE,KEY,...` into flow options.
pub fn flow_spec(text: &str) -> Result<FlowArgs> {
    let words = text
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .map(|word| format!("--{word}"));
    let spec = Spec::try_parse_from(words).map_err(|error| {
        let error = error.to_string();
        let first = error.lines().next().unwrap_or_default();
        format!("--flow '{text}': {}", first.trim_start_matches("error: "))
    })?;
    Ok(spec.flow)
}

impl FlowArgs {
    /// These options, and from `more_general` those that are not given here.
    pub fn or(self, more_general: &FlowArgs) -> FlowArgs {
        let g = more_general.clone();
        FlowArgs {
            name: self.name.or(g.name),
            mode: self.mode.or(g.mode),
            rate: self.rate.or(g.rate),
            arrivals: self.arrivals.or(g.arrivals),
            conns: self.conns.or(g.conns),
            depth: self.depth.or(g.depth),
            request: self.request.or(g.request),
            reply: self.reply.or(g.reply),
            http: self.http.or(g.http),
            write: self.write.or(g.write),
            nodelay: self.nodelay.or(g.nodelay),
            nodelay_undone: self.nodelay_undone.or(g.nodelay_undone),
            cork: self.cork.or(g.cork),
            cork_held: self.cork_held.or(g.cork_held),
            more: self.more.or(g.more),
            cc: self.cc.or(g.cc),
            server_cc: self.server_cc.or(g.server_cc),
            sndbuf: self.sndbuf.or(g.sndbuf),
            warmup_exchanges: self.warmup_exchanges.or(g.warmup_exchanges),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn is_well_formed() {
        Cli::command().debug_assert();
    }

    /// Each is one that the report refuses (`report::records`).
    #[test]
    fn a_scenario_that_the_report_refuses_is_not_measured() {
        let client = |scenario: &str| {
            let option = format!("--scenario={scenario}");
            Cli::try_parse_from(["rpctail", "client", "--connect=127.0.0.1", &option])
        };
        assert!(client("T4-loss").is_ok() && client("a.b").is_ok());
        for name in ["", ".", "..", ".T0", "a/b"] {
            let error = client(name).unwrap_err().to_string();
            assert!(error.contains("a scenario's name"), "{name}: {error}");
        }
    }

    #[test]
    fn a_flow_overrides_the_command_line() {
        let general = flow_spec("conns=4,nodelay,reply=3091+5").unwrap();
        let flow = flow_spec("name=a, conns=2,nodelay=server")
            .unwrap()
            .or(&general);
        assert_eq!(flow.name.as_deref(), Some("a"));
        assert_eq!(flow.conns, Some(2));
        assert_eq!(flow.nodelay, Some(Who::Server));
        assert_eq!(flow.reply.unwrap().to_string(), "3091+5");
        assert_eq!(general.nodelay, Some(Who::Both));
    }

    #[test]
    fn errors_name_the_flow_and_the_value() {
        let error = flow_spec("conns=0").unwrap_err();
        assert!(
            error.contains("--flow 'conns=0'") && error.contains("0 is not in"),
            "{error}"
        );
        let error = flow_spec("colour=red").unwrap_err();
        assert!(error.contains("--colour"), "{error}");
        let error = flow_spec("reply=mss+1").unwrap_err();
        assert!(error.contains("(mss+1)"), "{error}");
    }
}
