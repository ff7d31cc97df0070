// SPDX-License-Identifier: GPL-2.0

//! The server: one thread that answers any number of clients, each connection as its hello asks.

mod talk;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, sockopt};

use crate::cli::{PORT, ServerArgs};
use crate::poller::{Poller, Ready, now};
use crate::writer::{CHUNK, Writer};
use crate::{Result, sockopt as options, tcp_info};

/// The listening socket's token; connections have the numbers below.
const LISTENER: u64 = u64::MAX - 1;

/// The most bytes taken in by one read.
const READ: usize = 256 << 10;

/// A connection before and after its hello.
enum Stage {
    /// The bytes of the hello so far.
    Hello(Vec<u8>),
    /// A stream: everything is read and thrown away.
    Sink,
    /// Each byte says that the measurement of the connection's owner begins.
    Marks,
    /// Requests of `request` bytes, `got` of the next one here; `owed` replies to be begun.
    Rpc {
        request: u64,
        got: u64,
        owed: u64,
        writer: Writer,
    },
}

struct Conn {
    stream: TcpStream,
    stage: Stage,
    /// Watched for room to write.
    writing: bool,
    /// The client's address and session.
    owner: (IpAddr, u32),
    /// Its tcp_info when the measurement began.
    base: tcp_info::Info,
    /// The smallest congestion window seen since (packets).
    cwnd_min: u32,
}

impl Conn {
    /// Looks at the connection and notes its congestion window.
    fn sample(&mut self) -> tcp_info::Info {
        let info = tcp_info::read(&self.stream).unwrap_or_default();
        if info.cwnd > 0 {
            self.cwnd_min = self.cwnd_min.min(info.cwnd);
        }
        info
    }

    /// The measurement begins.
    fn mark(&mut self) {
        self.cwnd_min = u32::MAX;
        self.base = self.sample();
    }
}

/// What becomes of a connection after an event.
#[derive(PartialEq, Eq)]
enum Next {
    Keep,
    Close,
}

/// The server's state.
pub struct Server {
    args: ServerArgs,
    listener: TcpListener,
    poller: Poller,
    conns: Vec<Option<Conn>>,
    free: Vec<usize>,
    buffer: Vec<u8>,
    payload: Vec<u8>,
    requests: u64,
    next_sample: u64,
    sampled: usize,
}

/// Resolves `ADDR[:PORT]`; an address without a port gets `port`.
pub fn resolve(text: &str, port: u16) -> Result<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse() {
        return Ok(SocketAddr::new(ip, port));
    }
    let with_port = if text.contains(':') {
        text.to_owned()
    } else {
        format!("{text}:{port}")
    };
    let mut found = with_port.to_socket_addrs().map_err(|e| {
        format!(
            "'{text}' is no address: {e}; examples: 10.0.0.2, 10.0.0.2:{port}, [fd00::2]:{port}"
        )
    })?;
    found.next().ok_or(format!("'{text}' has no address"))
}

/// Makes the listening socket.
fn listen(args: &ServerArgs) -> Result<TcpListener> {
    let address = resolve(&args.listen, PORT)?;
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let explain = |e: Errno| match e {
        Errno::ADDRINUSE => format!(
            "{address} is in use: another server runs there; stop it or give --listen ADDR:PORT"
        ),
        e => format!("cannot listen on {address}: {e}"),
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket =
        rustix::net::socket_with(family, SocketType::STREAM, flags, None).map_err(explain)?;
    sockopt::set_socket_reuseaddr(&socket, true).map_err(explain)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        sockopt::set_ipv6_v6only(&socket, false).map_err(explain)?;
    }
    if let Some(name) = &args.cc {
        options::set_cc(&socket, name)?;
    }
    rustix::net::bind(&socket, &address).map_err(explain)?;
    rustix::net::listen(&socket, 4096).map_err(explain)?;
    Ok(socket.into())
}

impl Server {
    /// Listens; [`Server::run`] serves.
    pub fn new(args: ServerArgs) -> Result<Self> {
        let listener = listen(&args)?;
        let poller = Poller::new().map_err(|e| format!("epoll: {e}"))?;
        poller
            .add(&listener, LISTENER, false)
            .map_err(|e| format!("epoll: {e}"))?;
        Ok(Self {
            args,
            listener,
            poller,
            conns: Vec::new(),
            free: Vec::new(),
            buffer: vec![0; READ],
            payload: vec![0; CHUNK],
            requests: 0,
            next_sample: 0,
            sampled: 0,
        })
    }

    /// Where the server listens, for one that let the kernel pick the port.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until killed, or with `--once` until the last connection is closed.
    pub fn run(mut self) -> Result<()> {
        let mut ready: Vec<Ready> = Vec::new();
        loop {
            let deadline = self.sample();
            self.poller
                .wait(deadline, &mut ready)
                .map_err(|e| format!("epoll: {e}"))?;
            for event in &ready {
                if event.token == LISTENER {
                    self.accept();
                    continue;
                }
                let at = event.token as usize;
                if self.event(at, *event) == Next::Close {
                    // Dropping the socket closes it, and epoll forgets what is closed.
                    self.conns[at] = None;
                    self.free.push(at);
                }
            }
            if self.args.once && !self.conns.is_empty() && self.free.len() == self.conns.len() {
                return Ok(());
            }
        }
    }

    fn accept(&mut self) {
        loop {
            let (stream, peer) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e) => {
                    // Out of descriptors, or the peer gave up: the others are still served.
                    eprintln!("rpctail: accept: {e}");
                    return;
                }
            };
            let at = self.free.pop().unwrap_or_else(|| {
                self.conns.push(None);
                self.conns.len() - 1
            });
            let watched = stream
                .set_nonblocking(true)
                .and_then(|()| self.poller.add(&stream, at as u64, false));
            if let Err(e) = watched {
                eprintln!("rpctail: {e}");
                self.free.push(at);
                continue;
            }
            let stage = Stage::Hello(Vec::new());
            self.conns[at] = Some(Conn {
                stream,
                stage,
                writing: false,
                owner: (peer.ip(), 0),
                base: tcp_info::Info::default(),
                cwnd_min: u32::MAX,
            });
        }
    }

    fn event(&mut self, at: usize, event: Ready) -> Next {
        let Some(conn) = self.conns[at].as_mut() else {
            return Next::Keep;
        };
        let mut next = Next::Keep;
        if event.readable {
            next = match recv(&conn.stream, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((0, _)) => talk::farewell(conn),
                Ok((n, _)) => match &mut conn.stage {
                    Stage::Sink => Next::Keep,
                    Stage::Marks => {
                        let owner = conn.owner;
                        self.mark(owner);
                        return Next::Keep;
                    }
                    Stage::Hello(line) => {
                        line.extend(&self.buffer[..n]);
                        talk::hello(conn)
                    }
                    Stage::Rpc {
                        request, got, owed, ..
                    } => {
                        *got += n as u64;
                        let complete = *got / *request;
                        *got %= *request;
                        *owed += complete;
                        if let Some(stall) = self.args.stall {
                            if (self.requests + complete) / stall.every
                                > self.requests / stall.every
                            {
                                thread::sleep(Duration::from_nanos(stall.ns));
                            }
                        }
                        self.requests += complete;
                        Next::Keep
                    }
                },
                Err(Errno::AGAIN | Errno::INTR) => Next::Keep,
                Err(_) => Next::Close,
            };
        }
        if next == Next::Keep && reply(conn, &self.payload).is_err() {
            return Next::Close;
        }
        let Stage::Rpc { writer, .. } = &conn.stage else {
            return next;
        };
        if writer.active() != conn.writing {
            conn.writing = writer.active();
            if self
                .poller
                .modify(&conn.stream, at as u64, conn.writing)
                .is_err()
            {
                return Next::Close;
            }
        }
        next
    }

    /// Looks at the next RPC connection if it is time; returns when it is time again. As in the
    /// client the looks ride along with other work, and an idle server wakes up for one in ten.
    fn sample(&mut self) -> Option<u64> {
        let (every, time) = (self.args.sample, now());
        let is_rpc =
            |conn: &Option<Conn>| matches!(conn, Some(c) if matches!(c.stage, Stage::Rpc { .. }));
        if every == 0 || !self.conns.iter().any(is_rpc) {
            return None;
        }
        if time >= self.next_sample {
            self.next_sample = time + every;
            let (before, after) = (0..=self.sampled, self.sampled + 1..self.conns.len());
            if let Some(at) = after.chain(before).find(|at| is_rpc(&self.conns[*at])) {
                self.sampled = at;
                self.conns[at].iter_mut().for_each(|c| _ = c.sample());
            }
        }
        Some(self.next_sample.saturating_add(9 * every))
    }

    /// The measurement of a client begins: its connections are looked at from here on.
    fn mark(&mut self, owner: (IpAddr, u32)) {
        let conns = self.conns.iter_mut().flatten();
        conns.filter(|c| c.owner == owner).for_each(Conn::mark);
    }
}

/// Begins and continues the replies that are owed.
fn reply(conn: &mut Conn, payload: &[u8]) -> io::Result<()> {
    let Stage::Rpc { owed, writer, .. } = &mut conn.stage else {
        return Ok(());
    };
    loop {
        if !writer.active() {
            if *owed == 0 {
                return Ok(());
            }
            *owed -= 1;
            writer.start();
        }
        if !writer.push(&conn.stream, payload)? {
            return Ok(());
        }
    }
}
