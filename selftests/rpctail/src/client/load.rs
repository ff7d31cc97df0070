// SPDX-License-Identifier: GPL-2.0

//! What the client does at each event: send, read, record, and go on.

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::{Client, Phase};
use crate::cli::Mode;
use crate::poller::now;
use crate::rpc::Exchange;

impl Client<'_> {
    /// Hands the requests whose moment has come to their connections.
    pub(super) fn send_due(&mut self, time: u64) {
        for i in 0..self.flows.len() {
            while let Some(schedule) = self.flows[i].schedule.as_mut().filter(|s| s.peek() <= time)
            {
                let (k, meant) = schedule.take();
                if meant >= self.load_end {
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
    pub(super) fn request(&mut self, at: usize, meant: u64, count: usize) {
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
    pub(super) fn round(&mut self, i: usize, meant: u64) {
        let alive = self.flows[i]
            .conns
            .clone()
            .filter(|at| !self.conns[*at].dead);
        let alive: Vec<usize> = alive.collect();
        self.flows[i].round = (!alive.is_empty()).then_some((meant, alive.len()));
        alive.into_iter().for_each(|at| self.request(at, meant, 1));
    }

    /// Begins the next round of a barrier that has a rate, if its moment has come.
    pub(super) fn next_round(&mut self, i: usize) {
        if self.flows[i].round.is_none() {
            if let Some(meant) = self.flows[i].late_rounds.pop_front() {
                self.round(i, meant);
            }
        }
    }

    /// One reply less to wait for in a barrier's round.
    pub(super) fn round_reply(&mut self, i: usize, time: u64) {
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
        } else if time < self.load_end {
            self.round(i, time);
        }
    }

    /// Sends what a connection may send and watches for room if it could not.
    pub(super) fn pump(&mut self, at: usize) {
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
    pub(super) fn read(&mut self, at: usize) {
        let conn = &mut self.conns[at];
        if conn.dead {
            return;
        }
        match recv(&conn.stream, &mut self.buffer[..], RecvFlags::empty()) {
            Ok((0, _)) => {
                let why = conn.why_closed();
                self.broken(at, why);
            }
            Ok((n, _)) => {
                let time = now();
                let complete = match conn.arrived(&self.buffer[..n]) {
                    Ok(complete) => complete,
                    Err(why) => return self.broken(at, &why),
                };
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
    pub(super) fn answered(&mut self, at: usize, exchange: Exchange, time: u64) {
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
            conn.bytes += conn.exchange_bytes();
            running.stats.bytes += conn.exchange_bytes();
        }
        let wanted = u64::from(running.flow.warmup_exchanges);
        if conn.exchanges == wanted {
            running.primed += 1;
        }
        let again = match running.flow.mode {
            Mode::Closed => time < self.load_end,
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

    /// A connection is of no use any more.
    pub(super) fn broken(&mut self, at: usize, why: &str) {
        let conn = &mut self.conns[at];
        let i = conn.flow;
        let wanted = u64::from(self.flows[i].flow.warmup_exchanges);
        if !self.flows[i].flow.is_stream() && conn.exchanges < wanted {
            self.flows[i].primed += 1;
        }
        conn.dead = true;
        self.alive -= 1;
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

    /// A request will not be answered: it is in the tail with the time that it has waited.
    pub(super) fn unfinished(&mut self, at: usize, meant: u64, sent: Option<u64>) {
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
}
