// SPDX-License-Identifier: GPL-2.0

//! One client connection: which requests wait, which are on their way, which are answered.
//!
//! A request has two moments. It is *meant* for one, by its schedule; it is *sent* at another,
//! later when the connection is still busy with the request before (wrk2's rule: a connection
//! that is held up does not make its later requests start later, it makes them late).

use std::collections::VecDeque;
use std::io;
use std::net::TcpStream;

use crate::Result;
use crate::connect::Link;
use crate::http::Replies;
use crate::poller::now;
use crate::tcp_info::Info;
use crate::writer::Writer;

/// A request that is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When it was meant to be sent (ns).
    pub meant: u64,
    /// When its first byte was given to the kernel (ns).
    pub sent: u64,
}

/// The order of a connection's requests, without the socket.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: VecDeque<u64>,
    sent: VecDeque<Exchange>,
}

impl Queue {
    /// A request is meant for `meant` (ns).
    pub fn push(&mut self, meant: u64) {
        self.waiting.push_back(meant);
    }

    /// Takes the next request that may be sent with at most `depth` on their way; `clock` is read
    /// only if there is one.
    pub fn send(&mut self, depth: usize, clock: impl FnOnce() -> u64) -> bool {
        if self.sent.len() >= depth {
            return false;
        }
        let Some(meant) = self.waiting.pop_front() else {
            return false;
        };
        self.sent.push_back(Exchange {
            meant,
            sent: clock(),
        });
        true
    }

    /// A reply has come for the oldest request on its way.
    pub fn answer(&mut self) -> Option<Exchange> {
        self.sent.pop_front()
    }

    /// Whether no request waits or is on its way.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.sent.is_empty()
    }

    /// Everything that has no reply yet: when it was meant for, and when it was sent.
    pub fn take_unanswered(&mut self) -> Vec<(u64, Option<u64>)> {
        let sent = self.sent.drain(..).map(|x| (x.meant, Some(x.sent)));
        sent.chain(self.waiting.drain(..).map(|meant| (meant, None)))
            .collect()
    }
}

/// How the end of a reply is seen.
#[derive(Debug)]
pub enum Framing {
    /// Both ends know its size.
    Size {
        /// Bytes of a reply.
        reply: u64,
        /// Bytes of the one that is coming.
        got: u64,
    },
    /// As HTTP/1.1 says.
    Http(Replies),
}

impl Framing {
    /// These bytes have arrived; how many replies that completes.
    fn arrived(&mut self, bytes: &[u8]) -> Result<u64> {
        match self {
            Framing::Size { reply, got } => {
                let size = (*reply).max(1);
                *got += bytes.len() as u64;
                let complete = *got / size;
                *got %= size;
                Ok(complete)
            }
            Framing::Http(replies) => replies.arrived(bytes),
        }
    }

    /// Bytes of the reply that has just come.
    fn reply(&self) -> u64 {
        match self {
            Framing::Size { reply, .. } => *reply,
            Framing::Http(replies) => replies.last(),
        }
    }
}

/// A connection of the client.
pub struct Conn {
    /// The socket.
    pub stream: TcpStream,
    /// The flow it belongs to.
    pub flow: usize,
    /// Its requests.
    pub queue: Queue,
    /// Exchanges that are over, the warm-up's included.
    pub exchanges: u64,
    /// Bytes of payload in the measured time, as [`Stats::bytes`](crate::stats::Stats::bytes).
    pub bytes: u64,
    /// Watched for room to write.
    pub writing: bool,
    /// Broken, and not to be used any more.
    pub dead: bool,
    /// Its tcp_info when the measurement began.
    pub base: Info,
    writer: Writer,
    framing: Framing,
}

impl Conn {
    /// A connection of flow number `flow`.
    pub fn new(link: Link, flow: usize) -> Self {
        Self {
            stream: link.stream,
            flow,
            queue: Queue::default(),
            exchanges: 0,
            bytes: 0,
            writing: false,
            dead: false,
            base: Info::default(),
            writer: link.writer,
            framing: link.framing,
        }
    }

    /// Bytes of a request and of the reply that has just come.
    pub fn exchange_bytes(&self) -> u64 {
        self.writer.message() + self.framing.reply()
    }

    /// Why the server may have closed the connection.
    pub fn why_closed(&self) -> &'static str {
        match &self.framing {
            Framing::Http(replies) if replies.closes() => {
                "the server closed the connection, as it had said (Connection: close); \
                 allow more requests on a connection there"
            }
            _ => "the server closed the connection",
        }
    }

    /// Sends what may be sent; true when the socket takes no more for now.
    pub fn pump(&mut self, depth: usize, payload: &[u8]) -> io::Result<bool> {
        loop {
            if !self.writer.active() {
                if !self.queue.send(depth, now) {
                    return Ok(false);
                }
                self.writer.start();
            }
            if !self.writer.push(&self.stream, payload)? {
                return Ok(true);
            }
        }
    }

    /// Streams: writes a while, as long as the socket takes it; true when it takes no more for now.
    pub fn stream(&mut self, payload: &[u8]) -> io::Result<bool> {
        // Other connections want their turn: epoll says again that there is room.
        for _ in 0..16 {
            if !self.writer.active() {
                self.writer.start();
            }
            if !self.writer.push(&self.stream, payload)? {
                break;
            }
        }
        Ok(true)
    }

    /// These bytes of replies have arrived; how many replies that completes.
    pub fn arrived(&mut self, bytes: &[u8]) -> Result<u64> {
        self.framing.arrived(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Arrivals, Schedule};
    use crate::stats::Stats;
    use crate::units::SECOND;

    /// 1000 requests a second for 10 s against a server that takes 1 µs, but stops for 1 s once.
    fn stalled(depth: usize) -> Stats {
        let mut schedule = Schedule::new(0, 1_000_000, Arrivals::Constant, 0);
        let mut queue = Queue::default();
        let mut stats = Stats::default();
        let mut server_free = 0;
        while schedule.peek() < 10 * SECOND {
            let (k, meant) = schedule.take();
            queue.push(meant);
            let mut clock = meant.max(server_free);
            while queue.send(depth, || clock) {
                let stall = if k == 5_000 { SECOND } else { 0 };
                clock += 1_000 + stall;
                let x = queue.answer().unwrap();
                stats.latency.record(clock - x.meant);
                stats.service.record(clock - x.sent);
            }
            server_free = clock;
        }
        stats
    }

    #[test]
    fn coordinated_omission_shows() {
        let stats = stalled(1);
        assert_eq!(stats.latency.count(), 10_000);
        // The stall held up a tenth of all requests, half of them by more than half a second; a
        // clock that starts when a request is sent sees one slow request in ten thousand.
        let ms = |ns: u64| ns / 1_000_000;
        assert!(
            (450..=550).contains(&ms(stats.latency.quantile(0.95))),
            "{:?}",
            stats.latency.quantile(0.95)
        );
        assert!((880..=920).contains(&ms(stats.latency.quantile(0.99))));
        assert_eq!(ms(stats.service.quantile(0.99)), 0);
        assert_eq!(ms(stats.service.max()), 1_000);
        assert_eq!(ms(stats.latency.max()), 1_000);
    }

    #[test]
    fn depth_bounds_what_is_on_its_way() {
        let mut queue = Queue::default();
        (0..5).for_each(|t| queue.push(t));
        assert!(queue.send(2, || 10) && queue.send(2, || 11) && !queue.send(2, || unreachable!()));
        assert_eq!(queue.answer(), Some(Exchange { meant: 0, sent: 10 }));
        assert!(queue.send(2, || 12));
        assert_eq!(
            queue.take_unanswered(),
            [(1, Some(11)), (2, Some(12)), (3, None), (4, None)]
        );
        assert!(queue.is_idle() && queue.answer().is_none());
    }
}
