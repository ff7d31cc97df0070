// SPDX-License-Identifier: GPL-2.0

//! Messages as data: a request or a reply is a list of writes, `3091+5` being two.
//!
//! ```text
//! PATTERN = WRITE { "+" WRITE }
//! WRITE   = [ COUNT "x" ] SIZE
//! SIZE    = BYTES | [N] "mss" [ "-" K ] | "(" [N] "mss" "+" K ")" | "(" SIZE ")"
//! ```
//!
//! `mss` is the sending end's MSS on that connection, in bytes of payload; it is known only once
//! the connection stands, so a pattern is parsed first and resolved later.

use std::fmt;
use std::str::FromStr;

use crate::Result;
use crate::units;

/// The longest message, in bytes: it bounds what a peer can make the other end promise.
pub const MAX_MESSAGE: u64 = 1 << 30;

/// The most writes in a message.
const MAX_WRITES: usize = 65_536;

/// The size of one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    /// That many bytes.
    Bytes(u64),
    /// `mul` segments and `add` bytes.
    Mss { mul: u64, add: i64 },
}

/// A message as the writes it is made of, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    writes: Vec<Size>,
    text: String,
}

impl Pattern {
    /// The bytes of each write for a sender whose segments carry `mss` bytes.
    pub fn resolve(&self, mss: u32) -> Result<Vec<usize>> {
        let mut total = 0u64;
        let mut writes = Vec::with_capacity(self.writes.len());
        for size in &self.writes {
            let bytes = match *size {
                Size::Bytes(n) => Some(n),
                Size::Mss { mul, add } => mul
                    .checked_mul(u64::from(mss))
                    .and_then(|n| n.checked_add_signed(add)),
            };
            let bytes = bytes.filter(|n| *n > 0).ok_or(format!(
                "pattern '{self}': a write of no bytes with an MSS of {mss}"
            ))?;
            total = total.saturating_add(bytes);
            if total > MAX_MESSAGE {
                return Err(format!("pattern '{self}': more than {MAX_MESSAGE} bytes"));
            }
            writes.push(bytes as usize);
        }
        Ok(writes)
    }
}

/// Parses what stands between two `+` outside parentheses, without its parentheses.
fn size(text: &str, grouped: bool) -> Result<Size> {
    let Some(at) = text.find("mss") else {
        return match units::bytes(text)? {
            0 => Err("a write of 0 bytes sends nothing; leave it out".into()),
            n => Ok(Size::Bytes(n)),
        };
    };
    let (mul, rest) = (&text[..at], &text[at + 3..]);
    let bad = || format!("'{text}' is not a size; examples: mss, mss-1, (mss+1), (2mss+1)");
    let mul = if mul.is_empty() {
        1
    } else {
        mul.parse().map_err(|_| bad())?
    };
    let add: i64 = match rest.as_bytes() {
        [] => 0,
        [b'-', ..] => rest.parse().map_err(|_| bad())?,
        [b'+', ..] if grouped => rest.parse().map_err(|_| bad())?,
        _ => return Err(bad()),
    };
    Ok(Size::Mss { mul, add })
}

/// Splits at each `+` that is outside parentheses.
fn writes(text: &str) -> Result<Vec<&str>> {
    let (mut depth, mut from, mut out) = (0u32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or("a ')' without its '('")?,
            '+' if depth == 0 => {
                out.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("a '(' without its ')'".into());
    }
    out.push(&text[from..]);
    Ok(out)
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self> {
        let explain = |why: String| format!("pattern '{text}': {why}");
        let parts = writes(text).map_err(explain)?;
        let mut out = Vec::new();
        for (i, part) in parts.iter().enumerate() {
            // `mss+1` may mean one write or two: make the user say which.
            if i > 0 && parts[i - 1].ends_with("mss") {
                return Err(explain(format!(
                    "is it one write, ({0}+{1}), or two, ({0})+{1}? write the parentheses",
                    parts[i - 1],
                    part
                )));
            }
            let (count, one) = match part.split_once('x') {
                Some((n, one)) => match n.parse::<usize>() {
                    Ok(n) if (1..=MAX_WRITES).contains(&n) => (n, one),
                    _ => {
                        return Err(explain(format!(
                            "'{n}' is not a number of writes (1 to {MAX_WRITES})"
                        )));
                    }
                },
                None => (1, *part),
            };
            let inner = one.strip_prefix('(').and_then(|s| s.strip_suffix(')'));
            let size = size(inner.unwrap_or(one), inner.is_some()).map_err(explain)?;
            if out.len() + count > MAX_WRITES {
                return Err(explain(format!("more than {MAX_WRITES} writes")));
            }
            out.extend(std::iter::repeat_n(size, count));
        }
        let pattern = Self {
            writes: out,
            text: text.to_owned(),
        };
        // Sizes that no MSS can mend are refused now and not once connections stand.
        pattern.resolve(65_483).map(|_| pattern)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, mss: u32) -> Vec<usize> {
        text.parse::<Pattern>().unwrap().resolve(mss).unwrap()
    }

    #[test]
    fn splits_into_writes() {
        assert_eq!(at("3096", 1448), [3096]);
        assert_eq!(at("3091+5", 1448), [3091, 5]);
        assert_eq!(at("5+3091", 1448), [5, 3091]);
        assert_eq!(at("20+1M", 1448), [20, 1_000_000]);
        assert_eq!(at("3x500+1", 1448), [500, 500, 500, 1]);
    }

    #[test]
    fn follows_the_mss() {
        assert_eq!(at("mss-1", 1448), [1447]);
        assert_eq!(at("mss", 1448), [1448]);
        assert_eq!(at("(mss+1)", 1448), [1449]);
        assert_eq!(at("(2mss+1)+5", 1000), [2001, 5]);
        assert_eq!(at("(mss)+5", 1000), [1000, 5]);
        assert_eq!(at("2x(mss+1)", 9), [10, 10]);
    }

    #[test]
    fn asks_when_it_could_be_two_things() {
        let error = "mss+1".parse::<Pattern>().unwrap_err();
        assert!(
            error.contains("(mss+1)") && error.contains("(mss)+1"),
            "{error}"
        );
    }

    #[test]
    fn refuses_nonsense() {
        for text in [
            "",
            "+",
            "5+",
            "0",
            "x5",
            "0x5",
            "mss*2",
            "(5",
            "5)",
            "-5",
            "2G",
            "mss-70000",
            "99999999x5",
        ] {
            let error = text.parse::<Pattern>().unwrap_err();
            assert!(
                error.contains(&format!("pattern '{text}'")),
                "{text}: {error}"
            );
        }
        assert!("mss-1000".parse::<Pattern>().unwrap().resolve(536).is_err());
    }
}
