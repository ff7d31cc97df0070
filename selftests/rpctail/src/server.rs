// SPDX-License-Identifier: GPL-2.0

//! The server: one thread that answers any number of clients, each connection as its hello asks.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, sockopt};

use crate::cli::{PORT, ServerArgs};
use crate::pattern::Pattern;
use crate::poller::{Poller, Ready, now};
use crate::wire::{EndOptions, Farewell, Hello, MAX_LINE, VERSION, Welcome};
use crate::writer::{CHUNK, Writer};
use crate::{Result, sockopt as options, tcp_info, wire};

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
    cwnd_min: u32,
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
}

/// Resolves `ADDR[:PORT]`; an address without a port gets [`PORT`].
pub fn resolve(text: &str) -> Result<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse() {
        return Ok(SocketAddr::new(ip, PORT));
    }
    let with_port = if text.contains(':') {
        text.to_owned()
    } else {
        format!("{text}:{PORT}")
    };
    let mut found = with_port.to_socket_addrs().map_err(|e| {
        format!(
            "'{text}' is no address: {e}; examples: 10.0.0.2, 10.0.0.2:{PORT}, [fd00::2]:{PORT}"
        )
    })?;
    found.next().ok_or(format!("'{text}' has no address"))
}

/// Makes the listening socket.
fn listen(args: &ServerArgs) -> Result<TcpListener> {
    let address = resolve(&args.listen)?;
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
            self.poller
                .wait(None, &mut ready)
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
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
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
                Ok((0, _)) => farewell(conn),
                Ok((n, _)) => match &mut conn.stage {
                    Stage::Sink => Next::Keep,
                    Stage::Hello(line) => {
                        line.extend(&self.buffer[..n]);
                        hello(conn)
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
        if self.args.sample > 0 {
            let time = now();
            if time >= self.next_sample {
                self.next_sample = time + self.args.sample;
                sample(conn);
            }
        }
        next
    }
}

/// Notes the congestion window of a connection.
fn sample(conn: &mut Conn) -> tcp_info::Info {
    let info = tcp_info::read(&conn.stream).unwrap_or_default();
    if info.cwnd > 0 {
        conn.cwnd_min = conn.cwnd_min.min(info.cwnd);
    }
    info
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

/// Answers a hello once its line is whole.
fn hello(conn: &mut Conn) -> Next {
    let Stage::Hello(line) = &conn.stage else {
        return Next::Keep;
    };
    let Some(end) = line.iter().position(|b| *b == b'\n') else {
        return if line.len() > MAX_LINE {
            Next::Close
        } else {
            Next::Keep
        };
    };
    let (welcome, stage, end) = match agree(conn, &line[..end]) {
        Ok((reply, stage, end)) => (
            Welcome {
                error: None,
                reply,
                cc: options::cc(&conn.stream),
            },
            stage,
            end,
        ),
        Err(error) => (
            Welcome {
                error: Some(error),
                ..Welcome::default()
            },
            Stage::Sink,
            EndOptions::default(),
        ),
    };
    let failed = welcome.error.is_some();
    // A fresh connection has room for a line; where it has not, the client is of no use.
    let sent = conn.stream.write_all(&wire::line(&welcome)).is_ok();
    let ready = sent && options::before_load(&conn.stream, &end).is_ok();
    conn.stage = stage;
    if failed || !ready {
        Next::Close
    } else {
        Next::Keep
    }
}

/// Does what a hello asks; returns the bytes of a reply, how the connection goes on, and what is to
/// be set once the welcome is out.
fn agree(conn: &Conn, line: &[u8]) -> Result<(u64, Stage, EndOptions)> {
    let hello: Hello = wire::parse(line)?;
    if hello.version != VERSION {
        return Err(format!(
            "the server speaks version {VERSION}, the client {}; use the same rpctail",
            hello.version
        ));
    }
    options::before_connect(&conn.stream, &hello.options)?;
    if hello.request == 0 {
        return Ok((0, Stage::Sink, hello.options));
    }
    let mss = tcp_info::read(&conn.stream)
        .map_err(|e| format!("TCP_INFO: {e}"))?
        .mss;
    let writes = hello.reply.parse::<Pattern>()?.resolve(mss)?;
    let writer = Writer::new(writes, &hello.options);
    let bytes = writer.message();
    Ok((
        bytes,
        Stage::Rpc {
            request: hello.request,
            got: 0,
            owed: 0,
            writer,
        },
        hello.options,
    ))
}

/// Says goodbye to a client that has no more requests.
fn farewell(conn: &mut Conn) -> Next {
    if matches!(conn.stage, Stage::Rpc { .. }) {
        let info = sample(conn);
        let last = Farewell {
            info,
            cwnd_min: conn.cwnd_min,
        };
        // The client may be gone already: then nobody misses it.
        _ = conn.stream.write_all(&wire::line(&last));
    }
    Next::Close
}
