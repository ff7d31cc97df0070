// SPDX-License-Identifier: GPL-2.0

//! The server's side of the conversation before the load and after it.

use std::io::Write;

use super::{Conn, Next, Stage};
use crate::pattern::Pattern;
use crate::wire::{EndOptions, Farewell, Hello, Kind, MAX_LINE, VERSION, Welcome};
use crate::writer::Writer;
use crate::{Result, sockopt as options, tcp_info, wire};

/// Answers a hello once its line is whole.
pub(super) fn hello(conn: &mut Conn) -> Next {
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
    let line = line[..end].to_vec();
    let (welcome, stage, end) = match agree(conn, &line) {
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
fn agree(conn: &mut Conn, line: &[u8]) -> Result<(u64, Stage, EndOptions)> {
    let hello: Hello = wire::parse(line)?;
    if hello.version != VERSION {
        return Err(format!(
            "the server speaks version {VERSION}, the client {}; use the same rpctail",
            hello.version
        ));
    }
    options::before_connect(&conn.stream, &hello.options)?;
    conn.owner.1 = hello.session;
    match hello.kind {
        Kind::Stream => return Ok((0, Stage::Sink, hello.options)),
        Kind::Marks => return Ok((0, Stage::Marks, hello.options)),
        Kind::Rpc if hello.request == 0 => return Err("a request of no bytes".into()),
        Kind::Rpc => {}
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
pub(super) fn farewell(conn: &mut Conn) -> Next {
    if matches!(conn.stage, Stage::Rpc { .. }) {
        let to = conn.sample();
        let (from, cwnd_min) = (conn.base, conn.cwnd_min);
        let last = Farewell { from, to, cwnd_min };
        // The client may be gone already: then nobody misses it.
        _ = conn.stream.write_all(&wire::line(&last));
    }
    Next::Close
}
