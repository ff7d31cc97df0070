// SPDX-License-Identifier: GPL-2.0

//! Sends a message as its pattern says, as far as the socket lets it.

use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::{SendFlags, send, sockopt};

use crate::wire::EndOptions;

/// The most bytes given to the kernel in one call; a longer write is continued in the next.
pub const CHUNK: usize = 1 << 20;

/// The writes of a message and how much of them is done.
#[derive(Debug)]
pub struct Writer {
    writes: Vec<usize>,
    /// What a message is; without it, bytes of the payload.
    text: Option<Vec<u8>>,
    more: bool,
    cork: bool,
    write: usize,
    offset: usize,
    active: bool,
}

impl Writer {
    /// A writer of messages of these writes (bytes), as `options` say.
    pub fn new(writes: Vec<usize>, options: &EndOptions) -> Self {
        let (more, cork) = (options.more, options.cork);
        Self {
            writes,
            text: None,
            more,
            cork,
            write: 0,
            offset: 0,
            active: false,
        }
    }

    /// A writer of messages that are this text, each in one write.
    pub fn of_text(text: Vec<u8>, options: &EndOptions) -> Self {
        let mut writer = Self::new(vec![text.len()], options);
        writer.text = Some(text);
        writer
    }

    /// The bytes of a message.
    pub fn message(&self) -> u64 {
        self.writes.iter().map(|n| *n as u64).sum()
    }

    /// Begins a message; the one before must be done.
    pub fn start(&mut self) {
        debug_assert!(!self.active);
        (self.write, self.offset, self.active) = (0, 0, true);
    }

    /// Whether a message is begun and not done.
    pub fn active(&self) -> bool {
        self.active
    }

    /// Writes until the message is done (true) or the socket takes no more for now (false).
    /// `payload` is what to send, at least [`CHUNK`] bytes.
    pub fn push(&mut self, fd: impl AsFd, payload: &[u8]) -> io::Result<bool> {
        if self.cork && self.write == 0 && self.offset == 0 {
            sockopt::set_tcp_cork(&fd, true)?;
        }
        while let Some(&bytes) = self.writes.get(self.write) {
            let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            if self.more && self.write + 1 < self.writes.len() {
                flags |= SendFlags::MORE;
            }
            let data = match &self.text {
                Some(text) => &text[self.offset..],
                None => &payload[..(bytes - self.offset).min(CHUNK)],
            };
            match send(&fd, data, flags) {
                Ok(sent) => self.offset += sent,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
            if self.offset == bytes {
                (self.write, self.offset) = (self.write + 1, 0);
            }
        }
        if self.cork {
            sockopt::set_tcp_cork(&fd, false)?;
        }
        self.active = false;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn goes_on_where_the_socket_was_full() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let out = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let payload = vec![0; CHUNK];
        let options = EndOptions {
            cork: true,
            more: true,
            ..EndOptions::default()
        };
        let mut writer = Writer::new(vec![7, 30_000_000, 5], &options);
        assert_eq!(writer.message(), 30_000_012);
        writer.start();
        let (mut got, mut blocked) = (0, 0);
        let mut buffer = vec![0; CHUNK];
        while !writer.push(&out, &payload).unwrap() {
            blocked += 1;
            got += peer.read(&mut buffer).unwrap();
        }
        assert!(blocked > 0 && !writer.active());
        drop(out);
        while let n @ 1.. = peer.read(&mut buffer).unwrap() {
            got += n;
        }
        assert_eq!(got, 30_000_012);
    }
}
