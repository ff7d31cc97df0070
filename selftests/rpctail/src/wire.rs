// SPDX-License-Identifier: GPL-2.0

//! What the two ends say to each other before the load and after it: one line of JSON each.
//!
//! Between the two, a connection carries nothing but the bytes of requests and replies, whose
//! sizes both ends know: a request can be 15 bytes long, and no header adds a write.

use std::io::{Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::tcp_info::Info;

/// The version of this conversation; both ends must speak the same.
pub const VERSION: u32 = 1;

/// The longest line either end accepts (bytes).
pub const MAX_LINE: usize = 4096;

/// What one end does to its socket and to its writes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndOptions {
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// TCP_NODELAY set and cleared again.
    pub nodelay_undone: bool,
    /// TCP_CORK around each message.
    pub cork: bool,
    /// TCP_CORK for good.
    pub cork_held: bool,
    /// MSG_MORE on all writes of a message but the last.
    pub more: bool,
    /// TCP_CONGESTION.
    pub cc: Option<String>,
    /// SO_SNDBUF (bytes).
    pub sndbuf: Option<u64>,
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Requests and replies.
    Rpc,
    /// One-way data, which is only read.
    Stream,
    /// Nothing but marks: a byte says that the session's measurement begins.
    Marks,
}

/// The client's first line: what the server is to do on this connection.
#[derive(Debug, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`].
    pub version: u32,
    /// What the connection is for.
    pub kind: Kind,
    /// The client's number, the same on all its connections.
    pub session: u32,
    /// Bytes of a request; 0 where there are none.
    pub request: u64,
    /// The writes of a reply, a [`crate::pattern::Pattern`].
    pub reply: String,
    /// For the server's end.
    pub options: EndOptions,
}

/// The server's answer to [`Hello`].
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Welcome {
    /// Why the server cannot do it.
    pub error: Option<String>,
    /// Bytes of a reply.
    pub reply: u64,
    /// The congestion control of the server's end.
    pub cc: String,
}

/// The server's last line, after the client has shut its sending side down.
#[derive(Debug, Serialize, Deserialize)]
pub struct Farewell {
    /// The server's end when the measurement began.
    pub from: Info,
    /// The server's end now.
    pub to: Info,
    /// The smallest congestion window the server saw in between (packets).
    pub cwnd_min: u32,
}

/// A message as its line.
pub fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("plain structures have a JSON form");
    line.push(b'\n');
    line
}

/// Sends one message on a blocking stream.
pub fn send(mut stream: impl Write, message: &impl Serialize) -> Result<()> {
    stream.write_all(&line(message)).map_err(|e| e.to_string())
}

/// Reads one message from a blocking stream, and not a byte more.
pub fn receive<T: DeserializeOwned>(mut stream: impl Read) -> Result<T> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(0) => return Err("the connection was closed".into()),
            Ok(_) if byte[0] == b'\n' => return parse(&line),
            Ok(_) if line.len() == MAX_LINE => return Err("no end of the line".into()),
            Ok(_) => line.push(byte[0]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                return Err("no answer in time".into());
            }
            Err(e) => return Err(e.to_string()),
        }
    }
}

/// Parses a line without its end.
pub fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T> {
    serde_json::from_slice(line).map_err(|_| {
        let text: String = String::from_utf8_lossy(line).chars().take(60).collect();
        // A stranger's bytes are not for the terminal to obey.
        let text = text.escape_debug();
        format!("'{text}' is not rpctail's protocol; is the other end an rpctail?")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_and_nothing_more_is_read() {
        let hello = Hello {
            version: VERSION,
            kind: Kind::Rpc,
            session: 1,
            request: 15,
            reply: "3091+5".into(),
            options: EndOptions::default(),
        };
        let mut bytes = line(&hello);
        bytes.extend(b"payload");
        let mut rest = bytes.as_slice();
        let back: Hello = receive(&mut rest).unwrap();
        assert_eq!((back.request, back.reply.as_str()), (15, "3091+5"));
        assert_eq!(rest, b"payload");
    }

    #[test]
    fn strangers_are_told_so() {
        let error = receive::<Hello>(&b"GET / HTTP/1.1\r\n"[..]).unwrap_err();
        assert!(error.contains("is the other end an rpctail"), "{error}");
        let error = parse::<Hello>(b"\x1b[2J").unwrap_err();
        assert!(error.starts_with(r"'\u{1b}[2J'"), "{error}");
        assert!(receive::<Hello>(&b"{"[..]).is_err());
        assert!(receive::<Hello>(vec![b'x'; MAX_LINE + 9].as_slice()).is_err());
    }
}
