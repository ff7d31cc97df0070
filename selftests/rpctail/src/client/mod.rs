// SPDX-License-Identifier: GPL-2.0

//! The client's event loop: load on all connections of all flows, and its measurement.
//!
//! ```text
//! Prime ── every connection has had its exchanges ──► Warmup ─► Measure ─► Cooldown ─► Drain
//!  back to back, receivers leave quick-ACK mode        full      recorded   full        late
//!                                                      load                 load        replies
//! ```
//!
//! A request is recorded when the moment it was *meant* for lies in Measure.

mod finish;
mod load;

use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::net::TcpStream;
use std::ops::Range;

use crate::cli::{ClientArgs, Mode, PORT};
use crate::connect;
use crate::flow::{Flow, is_http};
use crate::poller::{Poller, Ready, now};
use crate::rpc::Conn;
use crate::schedule::Schedule;
use crate::server::resolve;
use crate::stats::Stats;
use crate::units::SECOND;
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
    Cooldown,
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
    late_rounds: VecDeque<u64>,
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
    /// One connection a server that tells it when the measurement begins.
    marks: Vec<TcpStream>,
    flows: Vec<Running>,
    conns: Vec<Conn>,
    /// Connections that are not broken.
    alive: usize,
    buffer: Vec<u8>,
    payload: Vec<u8>,
    phase: Phase,
    /// When the present phase ends (ns).
    phase_end: u64,
    /// The measured time (ns).
    window: Range<u64>,
    /// When no more requests are made (ns).
    load_end: u64,
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
            .map(|text| resolve(text, if is_http(&flows) { 80 } else { PORT }))
            .collect::<Result<Vec<_>>>()?;
        let http = is_http(&flows);
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
        let mut servers = servers;
        servers.sort();
        servers.dedup();
        let marks = servers
            .into_iter()
            .filter(|_| !http)
            .map(|server| connect::marks(server, args.bind, until));
        let marks = marks.collect::<Result<Vec<_>>>()?;
        let progress = !args.quiet && std::io::stderr().is_terminal();
        Ok(Self {
            args,
            poller,
            marks,
            flows: running,
            alive: conns.len(),
            conns,
            buffer: vec![0; READ],
            payload: vec![0; CHUNK],
            phase: Phase::Prime,
            phase_end: NEVER,
            window: NEVER..NEVER,
            load_end: NEVER,
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
            let over = self.phase == Phase::Drain && (now() >= self.phase_end || self.is_idle());
            if over || self.alive == 0 {
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
            // Looks at tcp_info ride along with other work; an idle client wakes up for one in ten.
            .min(self.next_sample.saturating_add(9 * self.args.sample))
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
        self.send_due(time);
        if self.phase == Phase::Measure && time >= self.phase_end {
            self.cool_down();
        }
        if self.phase == Phase::Cooldown && time >= self.phase_end {
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
                // Each flow has a seed of its own, the same in each run.
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
        for mut server in &self.marks {
            // One byte always fits; a server that has gone shows on the other connections.
            _ = server.write_all(b"!");
        }
        let time = now();
        self.phase = Phase::Measure;
        self.phase_end = time + self.args.duration;
        self.window = time..self.phase_end;
        self.load_end = self.phase_end + self.args.cooldown;
    }

    /// Ends the recording; the load goes on, for the sake of requests that are still on their way
    /// and of other programs that still measure.
    fn cool_down(&mut self) {
        self.phase = Phase::Cooldown;
        self.phase_end = self.load_end;
        for running in self.flows.iter_mut().filter(|f| f.flow.is_stream()) {
            let conns = &mut self.conns[running.conns.clone()];
            for conn in conns.iter_mut().filter(|c| !c.dead) {
                let info = tcp_info::read(&conn.stream).unwrap_or(conn.base);
                conn.bytes = info.bytes_acked.saturating_sub(conn.base.bytes_acked);
                running.stats.bytes += conn.bytes;
                running.stats.tcp.add(&conn.base, &info);
                running.stats.tcp.cwnd(info.cwnd);
            }
        }
    }

    /// Ends the load; late replies are waited for.
    fn drain(&mut self) {
        self.phase = Phase::Drain;
        self.phase_end = now() + self.args.drain;
        self.flows.iter_mut().for_each(|f| f.schedule = None);
    }

    /// Whether no reply is waited for any more.
    fn is_idle(&self) -> bool {
        self.conns.iter().all(|c| c.dead || c.queue.is_idle())
            && self.flows.iter().all(|f| f.late_rounds.is_empty())
    }
}
