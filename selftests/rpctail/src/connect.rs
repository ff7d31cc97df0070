// SPDX-License-Identifier: GPL-2.0

//! Makes a flow's connections and agrees with the server on what they will carry.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::flow::Flow;
use crate::poller::now;
use crate::rpc::Framing;
use crate::wire::{EndOptions, Hello, Kind, VERSION, Welcome};
use crate::writer::Writer;
use crate::{Result, http, sockopt as options, tcp_info, wire};

/// How long a server may take to answer a SYN or a hello.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to sleep before trying a server again that does not listen yet.
const RETRY: Duration = Duration::from_millis(20);

/// A connection whose two ends agree.
pub struct Link {
    /// The socket, non-blocking.
    pub stream: TcpStream,
    /// Sends the requests.
    pub writer: Writer,
    /// How the end of a reply is seen.
    pub framing: Framing,
    /// The congestion control of this end and of the server's.
    pub cc: (String, String),
}

/// What a flow asks of the client's end.
fn client_end(flow: &Flow) -> EndOptions {
    EndOptions {
        nodelay: flow.nodelay.client(),
        nodelay_undone: flow.nodelay_undone.client(),
        cork: flow.cork.client(),
        cork_held: flow.cork_held.client(),
        more: flow.more.client(),
        cc: flow.cc.clone(),
        sndbuf: flow.sndbuf,
    }
}

/// What a flow asks of the server's end.
fn server_end(flow: &Flow) -> EndOptions {
    EndOptions {
        nodelay: flow.nodelay.server(),
        nodelay_undone: flow.nodelay_undone.server(),
        cork: flow.cork.server(),
        cork_held: flow.cork_held.server(),
        more: flow.more.server(),
        cc: flow.server_cc.clone(),
        sndbuf: flow.sndbuf,
    }
}

/// A connected, still blocking socket.
fn dial(
    server: SocketAddr,
    bind: Option<IpAddr>,
    options: &EndOptions,
    until: u64,
) -> Result<TcpStream> {
    let family = if server.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    loop {
        let socket: OwnedFd = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(|e| format!("socket: {e}{}", files(e)))?;
        options::before_connect(&socket, options)?;
        if let Some(ip) = bind {
            rustix::net::bind(&socket, &SocketAddr::new(ip, 0)).map_err(|e| {
                format!("cannot connect from {ip}: {e}; --bind takes an address of this host")
            })?;
        }
        for side in [Timeout::Send, Timeout::Recv] {
            set_socket_timeout(&socket, side, Some(PATIENCE))
                .map_err(|e| format!("socket: {e}"))?;
        }
        match rustix::net::connect(&socket, &server) {
            Ok(()) => return Ok(socket.into()),
            Err(Errno::CONNREFUSED) if now() < until => thread::sleep(RETRY),
            Err(Errno::INPROGRESS) => {
                return Err(format!(
                    "{server} does not answer: is the address right, and does a firewall let it in?"
                ));
            }
            Err(Errno::CONNREFUSED) => {
                return Err(format!(
                    "nobody listens at {server}: start 'rpctail server --listen {server}' there, or the web server for --http"
                ));
            }
            Err(e) => return Err(format!("cannot connect to {server}: {e}")),
        }
    }
}

/// The remedy when there are no more descriptors.
fn files(error: Errno) -> &'static str {
    match error {
        Errno::MFILE => "; allow more with 'ulimit -n', or use fewer connections",
        _ => "",
    }
}

/// Tells the server what a connection is for; returns what it answers.
fn agree(
    stream: &TcpStream,
    kind: Kind,
    request: u64,
    reply: String,
    options: EndOptions,
) -> Result<Welcome> {
    let hello = Hello {
        version: VERSION,
        kind,
        session: std::process::id(),
        request,
        reply,
        options,
    };
    wire::send(stream, &hello)?;
    let welcome: Welcome = wire::receive(stream)?;
    match welcome.error {
        Some(error) => Err(format!("the server says: {error}")),
        None => Ok(welcome),
    }
}

/// A connection whose only use is to tell the server, by a byte, that the measurement begins.
pub fn marks(server: SocketAddr, bind: Option<IpAddr>, until: u64) -> Result<TcpStream> {
    let options = EndOptions::default();
    let stream = dial(server, bind, &options, until)?;
    let welcome = agree(&stream, Kind::Marks, 0, String::new(), options);
    welcome
        .map(|_| stream)
        .map_err(|e| format!("{server}: {e}"))
}

/// Connects to a server and agrees on what the flow will send. A server that does not listen yet
/// is tried again until `until` (ns of [`now`]).
pub fn link(flow: &Flow, server: SocketAddr, bind: Option<IpAddr>, until: u64) -> Result<Link> {
    let explain = |e: String| format!("flow '{}': {server}: {e}", flow.name);
    let end = client_end(flow);
    let stream =
        dial(server, bind, &end, until).map_err(|e| format!("flow '{}': {e}", flow.name))?;
    let mss = tcp_info::read(&stream)
        .map_err(|e| explain(format!("TCP_INFO: {e}")))?
        .mss;
    if let Some(path) = &flow.http {
        let request = http::request(path, &server.to_string());
        return ready(
            Link {
                cc: (options::cc(&stream), String::new()),
                stream,
                writer: Writer::of_text(request, &end),
                framing: Framing::Http(Default::default()),
            },
            &end,
        )
        .map_err(explain);
    }
    let writer = Writer::new(flow.request.resolve(mss)?, &end);
    let (kind, request) = match flow.is_stream() {
        true => (Kind::Stream, 0),
        false => (Kind::Rpc, writer.message()),
    };
    let reply = flow.reply.to_string();
    let welcome = agree(&stream, kind, request, reply, server_end(flow)).map_err(explain)?;
    let link = Link {
        cc: (options::cc(&stream), welcome.cc),
        stream,
        writer,
        framing: Framing::Size {
            reply: welcome.reply,
            got: 0,
        },
    };
    ready(link, &end).map_err(explain)
}

/// The last that is done to a connection before the load.
fn ready(link: Link, end: &EndOptions) -> Result<Link> {
    options::before_load(&link.stream, end)?;
    link.stream
        .set_nonblocking(true)
        .map_err(|e| e.to_string())?;
    Ok(link)
}
