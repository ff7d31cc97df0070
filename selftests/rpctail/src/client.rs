// SPDX-License-Identifier: GPL-2.0

//! The client's event loop: load on all connections of all flows, and its measurement.
//!
//! ```text
//! Prime ──── every connection has had its exchanges ────► Warmup ── time ──► Measure ── time ──► Drain
//!  back to back, receivers leave quick-ACK mode            full load          recorded            late replies
//! ```
//!
//! A request is recorded when the moment it was *meant* for lies in Measure.

use std::io::IsTerminal;
use std::net::Shutdown;
use std::ops::Range;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::cli::{ClientArgs, Mode};
use crate::connect;
use crate::flow::Flow;
use crate::poller::{Poller, Ready, now};
use crate::rpc::{Conn, Exchange};
use crate::schedule::Schedule;
use crate::server::resolve;
use crate::stats::Stats;
use crate::units::{SECOND, human_time};
use crate::wire::{self, Farewell};
use crate::writer::CHUNK;
use crate::{Result, tcp_info};

/// The longest the warm-up exchanges may take.
const PRIME_LIMIT: u64 = 120 * SECOND;

/// The most bytes taken in by one read.
const READ: usize = 256 << 10;

/// No moment yet.
const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Prime,
    Warmup,
    Measure,
    Drain,
}

/// A flow in progress.
struct Running {
    flow: Flow,
    conns: Range<usize>,
    /// Connections that have had their warm-up exchanges.
    primed: usize,
    /// The moments of an open flow or of a barrier's rounds with a rate.
    schedule: Option<Schedule>,
    /// The barrier's round: when it was meant to begin, and the replies it waits for.
    round: Option<(u64, usize)>,
    /// Rounds whose moment came while the one before was not over.
    late_rounds: std::collections::VecDeque<u64>,
    stats: Stats,
    cc: (String, String),
}

/// What a run found out about one flow.
pub struct Outcome {
    /// What was asked for.
    pub flow: Flow,
    /// What came out.
    pub stats: Stats,
    /// The congestion control of the client's end and of the server's.
    pub cc: (String, String),
}

/// The client's state.
struct Client<'a> {
    args: &'a ClientArgs,
    poller: Poller,
    flows: Vec<Running>,
    conns: Vec<Conn>,
    buffer: Vec<u8>,
    payload: Vec<u8>,
    phase: Phase,
    /// When the present phase ends (ns).
    phase_end: u64,
    /// The measured time (ns).
    window: Range<u64>,
    next_sample: u64,
    sampled: usize,
    next_progress: u64,
}

/// Connects, makes the load, measures it, and returns one outcome a flow.
pub fn run(args: &ClientArgs, flows: Vec<Flow>) -> Result<Vec<Outcome>> {
    let mut client = Client::connect(args, flows)?;
    client.run().map_err(|e| format!("epoll: {e}"))?;
    client.finish()
}

impl<'a> Client<'a> {
    fn connect(args: &'a ClientArgs, flows: Vec<Flow>) -> Result<Self> {
        let servers = args
            .connect
            .iter()
            .map(|text| resolve(text))
            .collect::<Result<Vec<_>>>()?;
        let poller = Poller::new().map_err(|e| format!("epoll: {e}"))?;
        let until = now() + args.wait;
        let (mut running, mut conns) = (Vec::new(), Vec::new());
        for flow in flows {
            let first = conns.len();
            let mut cc = Default::default();
            for i in 0..flow.conns as usize {
                let link = connect::link(&flow, servers[i % servers.len()], args.bind, until)?;
                poller
                    .add(&link.stream, conns.len() as u64, false)
                    .map_err(|e| format!("epoll: {e}"))?;
                cc = link.cc.clone();
                conns.push(Conn::new(link, running.len()));
            }
            running.push(Running {
                flow,
                conns: first..conns.len(),
                primed: 0,
                schedule: None,
                round: None,
                late_rounds: Default::default(),
                stats: Stats::default(),
                cc,
            });
        }
        let progress = !args.quiet && std::io::stderr().is_terminal();
        Ok(Self {
            args,
            poller,
            flows: running,
            conns,
            buffer: vec![0; READ],
            payload: vec![0; CHUNK],
            phase: Phase::Prime,
            phase_end: NEVER,
            window: NEVER..NEVER,
            next_sample: NEVER,
            sampled: 0,
            next_progress: if progress { 0 } else { NEVER },
        })
    }

    fn run(&mut self) -> std::io::Result<()> {
        self.prime();
        let mut ready: Vec<Ready> = Vec::new();
        loop {
            self.turn(now());
            if self.phase == Phase::Drain && (now() >= self.phase_end || self.is_idle()) {
                return Ok(());
            }
            let deadline = self.deadline();
            self.poller
                .wait((deadline != NEVER).then_some(deadline), &mut ready)?;
            for event in &ready {
                let at = event.token as usize;
                if event.readable {
                    self.read(at);
                }
                if event.writable {
                    self.pump(at);
                }
            }
        }
    }

    /// When something has to be done even if no event comes.
    fn deadline(&self) -> u64 {
        let due = self
            .flows
            .iter()
            .filter_map(|f| f.schedule.as_ref())
            .map(Schedule::peek);
        due.min()
            .unwrap_or(NEVER)
            .min(self.phase_end)
            .min(self.next_sample)
            .min(self.next_progress)
    }

    /// Everything that time alone sets off.
    fn turn(&mut self, time: u64) {
        if self.phase == Phase::Prime {
            if self.flows.iter().all(|f| f.primed >= f.conns.len()) {
                self.warm_up();
            } else if time >= self.phase_end {
                self.warn_unprimed();
                self.warm_up();
            }
        }
        if self.phase == Phase::Warmup && time >= self.phase_end {
            self.measure();
        }
        self.send_due(time.min(self.window.end));
        if self.phase == Phase::Measure && time >= self.phase_end {
            self.drain();
        }
        if time >= self.next_sample {
            self.sample();
            self.next_sample = time + self.args.sample;
        }
        if time >= self.next_progress {
            self.progress(time);
            self.next_progress = time + SECOND / 2;
        }
    }

    /// Begins the warm-up exchanges.
    fn prime(&mut self) {
        self.phase_end = now() + PRIME_LIMIT;
        for at in 0..self.conns.len() {
            let running = &mut self.flows[self.conns[at].flow];
            if running.flow.is_stream() {
                running.primed += 1;
            } else {
                let unwanted = running.flow.warmup_exchanges == 0;
                running.primed += usize::from(unwanted);
                if !unwanted || running.flow.mode == Mode::Closed {
                    self.request(at, now(), 1);
                }
            }
        }
    }

    /// Begins the full load.
    fn warm_up(&mut self) {
        let time = now();
        self.phase = Phase::Warmup;
        self.phase_end = time + self.args.warmup;
        if self.args.sample > 0 {
            self.next_sample = time + self.args.sample;
        }
        for i in 0..self.flows.len() {
            let running = &mut self.flows[i];
            let conns = running.conns.clone();
            if let Some(rate) = running.flow.rate {
                // Flows of the same rate must not march in step, but do the same in each run.
                let seed = self.args.seed.wrapping_add(i as u64);
                running.schedule = Some(Schedule::new(time, rate, running.flow.arrivals, seed));
            }
            match running.flow.mode {
                Mode::Stream => conns.for_each(|at| self.pump(at)),
                Mode::Barrier if running.flow.rate.is_none() => self.round(i, time),
                // The exchanges of the warm-up went on one at a time; now up to the depth.
                Mode::Closed if running.flow.depth > 1 => {
                    let more = running.flow.depth as usize - 1;
                    conns.for_each(|at| self.request(at, time, more));
                }
                _ => {}
            }
        }
    }

    /// Begins to record.
    fn measure(&mut self) {
        for conn in self.conns.iter_mut().filter(|c| !c.dead) {
            conn.base = tcp_info::read(&conn.stream).unwrap_or_default();
            self.flows[conn.flow].stats.tcp.cwnd(conn.base.cwnd);
        }
        let time = now();
        self.phase = Phase::Measure;
        self.phase_end = time + self.args.duration;
        self.window = time..self.phase_end;
    }

    /// Ends the load; late replies are waited for.
    fn drain(&mut self) {
        self.phase = Phase::Drain;
        self.phase_end = now() + self.args.drain;
        for running in &mut self.flows {
            running.schedule = None;
            running.late_rounds.clear();
            if !running.flow.is_stream() {
                continue;
            }
            for conn in self.conns[running.conns.clone()].iter().filter(|c| !c.dead) {
                let info = tcp_info::read(&conn.stream).unwrap_or(conn.base);
                running.stats.bytes += info.bytes_acked.saturating_sub(conn.base.bytes_acked);
                running.stats.tcp.add(&conn.base, &info);
                running.stats.tcp.cwnd(info.cwnd);
            }
        }
    }

    /// Whether no reply is waited for any more.
    fn is_idle(&self) -> bool {
        self.conns.iter().all(|c| c.dead || c.queue.is_idle())
    }

    /// Hands the requests whose moment has come to their connections.
    fn send_due(&mut self, time: u64) {
        for i in 0..self.flows.len() {
            while let Some(schedule) = self.flows[i].schedule.as_mut().filter(|s| s.peek() <= time)
            {
                let (k, meant) = schedule.take();
                if meant >= self.window.end {
                    continue;
                }
                if self.flows[i].flow.mode == Mode::Barrier {
                    self.flows[i].late_rounds.push_back(meant);
                    self.next_round(i);
                } else {
                    let conns = &self.flows[i].conns;
                    let at = conns.start + (k % conns.len() as u64) as usize;
                    self.request(at, meant, 1);
                }
            }
        }
    }

    /// Means `count` requests for the moment `meant` on a connection.
    fn request(&mut self, at: usize, meant: u64, count: usize) {
        if self.window.contains(&meant) {
            self.flows[self.conns[at].flow].stats.requests += count as u64;
        }
        for _ in 0..count {
            if self.conns[at].dead {
                self.unfinished(at, meant, None);
            } else {
                self.conns[at].queue.push(meant);
            }
        }
        self.pump(at);
    }

    /// Begins a barrier's round that was meant for the moment `meant`.
    fn round(&mut self, i: usize, meant: u64) {
        let alive = self.flows[i]
            .conns
            .clone()
            .filter(|at| !self.conns[*at].dead);
        let alive: Vec<usize> = alive.collect();
        self.flows[i].round = (!alive.is_empty()).then_some((meant, alive.len()));
        alive.into_iter().for_each(|at| self.request(at, meant, 1));
    }

    /// Begins the next round of a barrier that has a rate, if its moment has come.
    fn next_round(&mut self, i: usize) {
        if self.flows[i].round.is_none() {
            if let Some(meant) = self.flows[i].late_rounds.pop_front() {
                self.round(i, meant);
            }
        }
    }

    /// One reply less to wait for in a barrier's round.
    fn round_reply(&mut self, i: usize, time: u64) {
        let Some((meant, waiting)) = self.flows[i].round else {
            return;
        };
        if waiting > 1 {
            self.flows[i].round = Some((meant, waiting - 1));
            return;
        }
        self.flows[i].round = None;
        if self.window.contains(&meant) {
            self.flows[i].stats.rounds.record(time - meant);
        }
        if self.flows[i].flow.rate.is_some() {
            self.next_round(i);
        } else if time < self.window.end {
            self.round(i, time);
        }
    }

    /// Sends what a connection may send and watches for room if it could not.
    fn pump(&mut self, at: usize) {
        let conn = &mut self.conns[at];
        if conn.dead {
            return;
        }
        let running = &self.flows[conn.flow];
        let full = if !running.flow.is_stream() {
            conn.pump(running.flow.depth as usize, &self.payload)
        } else {
            conn.stream(&self.payload)
        };
        let watched = full.and_then(|full| {
            if full != conn.writing {
                conn.writing = full;
                self.poller.modify(&conn.stream, at as u64, full)?;
            }
            Ok(())
        });
        if let Err(error) = watched {
            self.broken(at, &error.to_string());
        }
    }

    /// Reads what has come on a connection.
    fn read(&mut self, at: usize) {
        let conn = &mut self.conns[at];
        if conn.dead {
            return;
        }
        match recv(&conn.stream, &mut self.buffer[..], RecvFlags::empty()) {
            Ok((0, _)) => self.broken(at, "the server closed the connection"),
            Ok((n, _)) => {
                let time = now();
                let complete = conn.arrived(n as u64);
                for _ in 0..complete {
                    match self.conns[at].queue.answer() {
                        Some(exchange) => self.answered(at, exchange, time),
                        None => return self.broken(at, "a reply that nobody asked for"),
                    }
                }
                if complete > 0 {
                    self.pump(at);
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => self.broken(at, &error.to_string()),
        }
    }

    /// A reply is whole: record it, and mean the next request if the flow goes back to back.
    fn answered(&mut self, at: usize, exchange: Exchange, time: u64) {
        let conn = &mut self.conns[at];
        let i = conn.flow;
        let running = &mut self.flows[i];
        conn.exchanges += 1;
        if self.window.contains(&exchange.meant) {
            running.stats.latency.record(time - exchange.meant);
            running.stats.service.record(time - exchange.sent);
        }
        if self.window.contains(&time) {
            running.stats.replies += 1;
            running.stats.bytes += conn.exchange_bytes();
        }
        let wanted = u64::from(running.flow.warmup_exchanges);
        if conn.exchanges == wanted {
            running.primed += 1;
        }
        let again = match running.flow.mode {
            Mode::Closed => time < self.window.end,
            _ => self.phase == Phase::Prime && conn.exchanges < wanted,
        };
        if again {
            // The caller pumps when it has gone through all replies.
            if self.window.contains(&time) {
                running.stats.requests += 1;
            }
            conn.queue.push(time);
        } else if running.flow.mode == Mode::Barrier && self.phase != Phase::Prime {
            self.round_reply(i, time);
        }
    }

    /// A request will not be answered: it is in the tail with the time that it has waited.
    fn unfinished(&mut self, at: usize, meant: u64, sent: Option<u64>) {
        let stats = &mut self.flows[self.conns[at].flow].stats;
        if self.window.contains(&meant) {
            let time = now();
            stats.unfinished += 1;
            stats.latency.record(time.saturating_sub(meant));
            if let Some(sent) = sent {
                stats.service.record(time.saturating_sub(sent));
            }
        }
    }

    /// A connection is of no use any more.
    fn broken(&mut self, at: usize, why: &str) {
        let conn = &mut self.conns[at];
        let i = conn.flow;
        let wanted = u64::from(self.flows[i].flow.warmup_exchanges);
        if !self.flows[i].flow.is_stream() && conn.exchanges < wanted {
            self.flows[i].primed += 1;
        }
        conn.dead = true;
        _ = self.poller.remove(&conn.stream);
        let peer = conn
            .stream
            .peer_addr()
            .map_or("a server".into(), |a| a.to_string());
        let stats = &mut self.flows[i].stats;
        stats.errors += 1;
        stats
            .first_error
            .get_or_insert_with(|| format!("{peer}: {why}"));
        let unanswered = conn.queue.take_unanswered();
        let in_round = unanswered.len();
        for (meant, sent) in unanswered {
            self.unfinished(at, meant, sent);
        }
        if self.flows[i].flow.mode == Mode::Barrier && self.phase != Phase::Prime && in_round > 0 {
            self.round_reply(i, now());
        }
    }

    /// Looks at the next connection's congestion window.
    fn sample(&mut self) {
        self.sampled = (self.sampled + 1) % self.conns.len();
        let conn = &self.conns[self.sampled];
        if self.phase >= Phase::Measure && !conn.dead {
            if let Ok(info) = tcp_info::read(&conn.stream) {
                self.flows[conn.flow].stats.tcp.cwnd(info.cwnd);
            }
        }
    }

    fn warn_unprimed(&self) {
        for running in self.flows.iter().filter(|f| f.primed < f.conns.len()) {
            eprintln!(
                "rpctail: flow '{}': {} of {} connections have not had their {} warm-up exchanges after {}; going on. \
                 Give fewer with --warmup-exchanges.",
                running.flow.name,
                running.conns.len() - running.primed,
                running.conns.len(),
                running.flow.warmup_exchanges,
                human_time(PRIME_LIMIT)
            );
        }
    }

    fn progress(&self, time: u64) {
        let replies: u64 = self.flows.iter().map(|f| f.stats.replies).sum();
        let left = self.phase_end.saturating_sub(time) / SECOND;
        let what = match self.phase {
            Phase::Prime => "warm-up exchanges".into(),
            Phase::Warmup => format!("warm-up, {left} s left"),
            Phase::Measure => format!("measuring, {left} s left, {replies} replies"),
            Phase::Drain => "waiting for late replies".into(),
        };
        eprint!("\r\x1b[K{what}");
    }

    /// Counts what is left over and asks the servers for their side.
    fn finish(mut self) -> Result<Vec<Outcome>> {
        if self.next_progress != NEVER {
            eprint!("\r\x1b[K");
        }
        for at in 0..self.conns.len() {
            let unanswered = self.conns[at].queue.take_unanswered();
            let clean = unanswered.is_empty();
            for (meant, sent) in unanswered {
                self.unfinished(at, meant, sent);
            }
            let conn = &self.conns[at];
            let running = &mut self.flows[conn.flow];
            if conn.dead || running.flow.is_stream() {
                continue;
            }
            if let Ok(info) = tcp_info::read(&conn.stream) {
                running.stats.tcp.add(&conn.base, &info);
                running.stats.tcp.cwnd(info.cwnd);
            }
            if clean {
                if let Ok(farewell) = farewell(conn) {
                    let zero = tcp_info::Info {
                        rto: Some(0),
                        ce: Some(0),
                        ..Default::default()
                    };
                    running.stats.peer.add(&zero, &farewell.info);
                    running.stats.peer.cwnd(farewell.cwnd_min);
                }
            }
        }
        let outcome = |f: Running| Outcome {
            flow: f.flow,
            stats: f.stats,
            cc: f.cc,
        };
        Ok(self.flows.into_iter().map(outcome).collect())
    }
}

/// Asks a server what it saw on a connection.
fn farewell(conn: &Conn) -> Result<Farewell> {
    let ask = || {
        conn.stream.set_nonblocking(false)?;
        conn.stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        conn.stream.shutdown(Shutdown::Write)
    };
    ask().map_err(|e| e.to_string())?;
    wire::receive(&conn.stream)
}
