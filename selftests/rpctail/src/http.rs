// SPDX-License-Identifier: GPL-2.0

//! HTTP/1.1 as a client needs it for load: one GET, and where each reply of a kept connection ends.
//!
//! The grammar of heads and of chunk sizes is the `httparse` crate's; here is the framing (RFC 9112
//! §6 and §7.1): Content-Length, chunked with trailers, 1xx before a reply, replies without content.
//! A reply that is not a success is an error: a load of 404s measures nothing.

use std::mem;

use httparse::{EMPTY_HEADER, Header, ParserConfig, Response, Status};

use crate::Result;

/// The longest head, chunk-size line or trailer that is accepted (bytes).
const MAX_PART: usize = 64 << 10;

/// The most fields in a head or trailer.
const MAX_FIELDS: usize = 128;

/// The bytes of a GET of `path` from `host`.
pub fn request(path: &str, host: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: rpctail\r\nAccept: */*\r\n\r\n")
        .into_bytes()
}

/// Checks the path of a request (RFC 9112 §3.2.1): it begins with '/', and is of printable ASCII.
pub fn path(text: &str) -> Result<String> {
    if !text.starts_with('/') || !text.bytes().all(|b| b.is_ascii_graphic() && b != b'#') {
        return Err(format!(
            "'{}' is no path of a request: it begins with '/', others than printable ASCII and '#' are %-encoded",
            text.escape_debug()
        ));
    }
    Ok(text.to_owned())
}

/// What of a reply comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Head,
    /// So many bytes of content.
    Content(u64),
    ChunkSize,
    /// So many bytes of a chunk.
    Chunk(u64),
    /// The line end after a chunk.
    ChunkEnd,
    Trailer,
}

/// The replies of one connection.
#[derive(Debug)]
pub struct Replies {
    part: Part,
    /// The beginning of a part that is not whole yet.
    held: Vec<u8>,
    /// Bytes of the reply so far.
    got: u64,
    /// Bytes of the last whole reply.
    last: u64,
    closes: bool,
}

impl Default for Replies {
    fn default() -> Self {
        Self {
            part: Part::Head,
            held: Vec::new(),
            got: 0,
            last: 0,
            closes: false,
        }
    }
}

impl Replies {
    /// These bytes have arrived; how many replies that completes.
    ///
    /// # Errors
    ///
    /// The reply is not a success, or is not HTTP/1.1 whose end can be seen: the connection is of no
    /// use any more.
    pub fn arrived(&mut self, bytes: &[u8]) -> Result<u64> {
        if self.held.is_empty() {
            return self.take(bytes);
        }
        let mut held = mem::take(&mut self.held);
        held.extend_from_slice(bytes);
        self.take(&held)
    }

    /// Bytes of the last whole reply, its head included.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Whether the server said that it closes the connection.
    pub fn closes(&self) -> bool {
        self.closes
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<u64> {
        let mut complete = 0;
        while !bytes.is_empty() {
            let Some((n, next)) = self.next(bytes)? else {
                if bytes.len() > MAX_PART {
                    return Err(format!("a head or line of more than {MAX_PART} bytes"));
                }
                self.held.extend_from_slice(bytes);
                break;
            };
            bytes = &bytes[n..];
            self.got = self.got.saturating_add(n as u64);
            match next {
                Some(part) => self.part = part,
                None => {
                    complete += 1;
                    (self.part, self.last, self.got) = (Part::Head, self.got, 0);
                }
            }
        }
        Ok(complete)
    }

    /// Bytes of the part that `bytes` begin with, and what comes next: `None` when the reply is whole.
    /// Nothing at all when more bytes are needed to tell.
    fn next(&mut self, bytes: &[u8]) -> Result<Option<(usize, Option<Part>)>> {
        Ok(match self.part {
            Part::Head => self.head(bytes)?,
            Part::Content(left) => {
                let n = at_most(left, bytes);
                let left = left - n as u64;
                Some((n, (left > 0).then_some(Part::Content(left))))
            }
            Part::ChunkSize => match httparse::parse_chunk_size(bytes) {
                Ok(Status::Complete((n, 0))) => Some((n, Some(Part::Trailer))),
                Ok(Status::Complete((n, size))) => Some((n, Some(Part::Chunk(size)))),
                Ok(Status::Partial) => None,
                Err(_) => return Err("a chunk without a size".into()),
            },
            Part::Chunk(left) => {
                let n = at_most(left, bytes);
                let left = left - n as u64;
                Some((
                    n,
                    Some(if left > 0 {
                        Part::Chunk(left)
                    } else {
                        Part::ChunkEnd
                    }),
                ))
            }
            Part::ChunkEnd => match bytes {
                [b'\r', b'\n', ..] => Some((2, Some(Part::ChunkSize))),
                [b'\r'] => None,
                _ => return Err("a chunk that is longer than its size".into()),
            },
            Part::Trailer => {
                let mut fields = [EMPTY_HEADER; MAX_FIELDS];
                match httparse::parse_headers(bytes, &mut fields) {
                    Ok(Status::Complete((n, _))) => Some((n, None)),
                    Ok(Status::Partial) => None,
                    Err(e) => return Err(format!("the trailer of a reply: {e}")),
                }
            }
        })
    }

    fn head(&mut self, bytes: &[u8]) -> Result<Option<(usize, Option<Part>)>> {
        let mut fields = [EMPTY_HEADER; MAX_FIELDS];
        let mut response = Response::new(&mut fields);
        let n = match ParserConfig::default().parse_response(&mut response, bytes) {
            Ok(Status::Complete(n)) => n,
            Ok(Status::Partial) => return Ok(None),
            Err(e) => return Err(format!("not a reply of HTTP/1.1: {e}")),
        };
        let code = response.code.unwrap_or_default();
        self.closes |= response.version == Some(0) || closes(response.headers);
        Ok(Some((
            n,
            match code {
                100 | 102..=199 => Some(Part::Head),
                204 => None,
                200..=299 => content(response.headers)?,
                _ => {
                    let reason = response.reason.unwrap_or_default().escape_debug();
                    return Err(format!(
                        "the server answers {code} {reason}; is the path right?"
                    ));
                }
            },
        )))
    }
}

/// The bytes of `bytes` that belong to `left` more.
fn at_most(left: u64, bytes: &[u8]) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len())
}

fn values<'h>(fields: &'h [Header<'_>], name: &str) -> impl Iterator<Item = &'h [u8]> {
    let of_name = move |f: &&Header<'_>| f.name.eq_ignore_ascii_case(name);
    fields.iter().filter(of_name).map(|f| f.value)
}

fn closes(fields: &[Header<'_>]) -> bool {
    values(fields, "Connection")
        .flat_map(|v| v.split(|b| *b == b','))
        .any(|word| word.trim_ascii().eq_ignore_ascii_case(b"close"))
}

/// What follows a head (RFC 9112 §6.3): `None` when nothing does.
fn content(fields: &[Header<'_>]) -> Result<Option<Part>> {
    let mut codings = values(fields, "Transfer-Encoding");
    let mut lengths = values(fields, "Content-Length");
    match (codings.next(), lengths.next()) {
        (Some(coding), None) if codings.next().is_none() => {
            match coding.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                true => Ok(Some(Part::ChunkSize)),
                false => Err(format!(
                    "a reply with Transfer-Encoding '{}', rpctail knows chunked",
                    coding.escape_ascii()
                )),
            }
        }
        (None, Some(length)) if lengths.all(|other| other == length) => {
            let digits = length.trim_ascii();
            let n = (std::str::from_utf8(digits).ok())
                .filter(|text| text.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|text| text.parse().ok());
            match n {
                Some(n) => Ok((n > 0).then_some(Part::Content(n))),
                None => Err(format!(
                    "a reply with Content-Length '{}'",
                    length.escape_ascii()
                )),
            }
        }
        (None, None) => Err(
            "a reply without Content-Length that is not chunked ends with its connection: \
             nothing to keep a load on"
                .into(),
        ),
        _ => Err("a reply with more than one length".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replies completed by `text`, given whole and a byte at a time.
    fn both(text: &str) -> Result<u64> {
        let whole = Replies::default().arrived(text.as_bytes());
        let mut replies = Replies::default();
        let mut sum = 0;
        for byte in text.as_bytes() {
            match replies.arrived(&[*byte]) {
                Ok(n) => sum += n,
                Err(e) => {
                    assert_eq!(whole, Err(e.clone()), "{text:?}");
                    return Err(e);
                }
            }
        }
        assert_eq!(whole, Ok(sum), "{text:?}");
        whole
    }

    const OK: &str = "HTTP/1.1 200 OK\r\n";

    #[test]
    fn ends_are_seen() {
        for (text, replies) in [
            ("Content-Length: 3\r\n\r\nabc", 1),
            ("Content-Length: 3\r\n\r\nab", 0),
            ("content-length: 0\r\n\r\n", 1),
            ("Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 1),
            ("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 1),
            (
                "Transfer-Encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nA: b\r\n\r\n",
                1,
            ),
            ("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", 0),
        ] {
            assert_eq!(both(&format!("{OK}{text}")), Ok(replies), "{text:?}");
        }
        let two = format!("HTTP/1.1 100 Continue\r\n\r\n{OK}Content-Length: 1\r\n\r\nx");
        assert_eq!(
            both(&format!("{two}HTTP/1.1 204 No Content\r\n\r\n{two}")),
            Ok(3)
        );
    }

    #[test]
    fn what_measures_nothing_is_an_error() {
        for (text, wanted) in [
            ("HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", "404"),
            ("HTTP/1.1 101 Switching Protocols\r\n\r\n", "101"),
            (
                "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n",
                "is the path right",
            ),
            ("HTTP/1.1 200 OK\r\n\r\n", "ends with its connection"),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
                "Content-Length '+1'",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
                "Content-Length",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                "more than one length",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                "more than one",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                "gzip, chunked",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
                "longer than its size",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
                "without a size",
            ),
            ("SSH-2.0-OpenSSH\r\n", "not a reply of HTTP/1.1"),
        ] {
            let error = both(text).unwrap_err();
            assert!(error.contains(wanted), "{text:?}: {error}");
        }
        let endless = format!("{OK}A: {}", "b".repeat(MAX_PART));
        assert!(both(&endless).unwrap_err().contains("more than"));
    }

    #[test]
    fn size_and_close_are_known() {
        let mut replies = Replies::default();
        let text = format!("{OK}Content-Length: 3\r\n\r\nabc");
        assert_eq!(replies.arrived(text.repeat(2).as_bytes()), Ok(2));
        assert_eq!(
            (replies.last(), replies.closes()),
            (text.len() as u64, false)
        );
        let text = format!("{OK}Connection: keep-alive, Close\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(replies.arrived(text.as_bytes()), Ok(1));
        assert!(replies.closes());
    }

    #[test]
    fn paths_are_checked() {
        assert_eq!(path("/a?b=c").as_deref(), Ok("/a?b=c"));
        for text in ["", "a", "/a b", "/a\r\nX: y", "/ä", "/a#b"] {
            assert!(path(text).unwrap_err().contains("is no path"), "{text:?}");
        }
    }
}
