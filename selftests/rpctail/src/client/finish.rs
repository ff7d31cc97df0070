// SPDX-License-Identifier: GPL-2.0

//! What the client says on its way, and what it adds up when the load is over.

use std::net::Shutdown;
use std::time::Duration;

use super::{Client, NEVER, Outcome, PRIME_LIMIT, Phase, Running};
use crate::rpc::Conn;
use crate::stats::fairness;
use crate::units::{SECOND, human_time};
use crate::wire::{self, Farewell};
use crate::{Result, tcp_info};

impl Client<'_> {
    /// Looks at the next connection's congestion window.
    pub(super) fn sample(&mut self) {
        self.sampled = (self.sampled + 1) % self.conns.len();
        let conn = &self.conns[self.sampled];
        if self.phase >= Phase::Measure && !conn.dead {
            if let Ok(info) = tcp_info::read(&conn.stream) {
                self.flows[conn.flow].stats.tcp.cwnd(info.cwnd);
            }
        }
    }

    pub(super) fn warn_unprimed(&self) {
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

    pub(super) fn progress(&self, time: u64) {
        let replies: u64 = self.flows.iter().map(|f| f.stats.replies).sum();
        let left = self.phase_end.saturating_sub(time) / SECOND;
        let what = match self.phase {
            Phase::Prime => "warm-up exchanges".into(),
            Phase::Warmup => format!("warm-up, {left} s left"),
            Phase::Cooldown => "measured; the load goes on for others".into(),
            Phase::Measure => format!("measuring, {left} s left, {replies} replies"),
            Phase::Drain => "waiting for late replies".into(),
        };
        eprint!("\r\x1b[K{what}");
    }

    /// Counts what is left over and asks the servers for their side.
    pub(super) fn finish(mut self) -> Result<Vec<Outcome>> {
        if self.next_progress != NEVER {
            eprint!("\r\x1b[K");
        }
        for i in 0..self.flows.len() {
            // Rounds whose moment has come and whose turn has not are requests without a reply.
            for meant in std::mem::take(&mut self.flows[i].late_rounds) {
                for at in self.flows[i].conns.clone() {
                    self.flows[i].stats.requests += u64::from(self.window.contains(&meant));
                    self.unfinished(at, meant, None);
                }
            }
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
            // Only an rpctail tells what it saw.
            if clean && running.flow.http.is_none() {
                if let Ok(farewell) = farewell(conn) {
                    running.stats.peer.add(&farewell.from, &farewell.to);
                    running.stats.peer.cwnd(farewell.cwnd_min);
                }
            }
        }
        let conns = &self.conns;
        let outcome = |mut f: Running| {
            f.stats.fairness = fairness(conns[f.conns].iter().map(|c| c.bytes));
            Outcome {
                flow: f.flow,
                stats: f.stats,
                cc: f.cc,
            }
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
