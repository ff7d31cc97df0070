// SPDX-License-Identifier: GPL-2.0

//! A plan says which of a fault's candidates are hit, and is written and read as text.
//!
//! ```text
//! off
//! every N   [sport P] [dport P] [limit K] [delay D]
//! random N  [sport P] [dport P] [limit K] [delay D]
//! ```
//!
//! `every N` hits each Nth candidate, `random N` one in N on average. The choice is a function of
//! the candidate's number and of a fixed seed, so that the same run in virtual time is hit at the
//! same packets. Ports are those of the sender (`sport`) and of its peer (`dport`); 0 is any.
//! `limit` ends it after K hits. `delay`, in µs, is for the fault that delays.

use core::fmt::{
    Result,
    Write, //
};

/// Longest delay, in µs: the RTO of a connection is never shorter than this.
pub(crate) const MAX_DELAY_US: u32 = 200_000;

/// Longest text of a plan, in bytes. A sysctl cuts off what is longer than 63, so a text of that
/// length may be the beginning of another one.
pub(crate) const MAX_TEXT: usize = 62;

/// Which candidates are hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// None.
    Off,
    /// Each Nth; N is at least 1.
    Every(u32),
    /// One in N on average; N is at least 1.
    Random(u32),
}

/// The ports of a connection, as its sender sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ports {
    /// The sender's own.
    pub(crate) local: u16,
    /// Its peer's.
    pub(crate) remote: u16,
}

/// Which candidates there are, and which of them are hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Which are hit.
    pub(crate) when: When,
    /// Only senders with this port; 0 is any.
    pub(crate) sport: u16,
    /// Only senders with a peer on this port; 0 is any.
    pub(crate) dport: u16,
    /// The end, after so many hits; 0 is never.
    pub(crate) limit: u32,
    /// How much is delayed, in µs; 0 for faults that delay nothing.
    pub(crate) delay_us: u32,
}

impl Plan {
    /// Nothing is hit.
    pub(crate) const OFF: Self = Self {
        when: When::Off,
        sport: 0,
        dport: 0,
        limit: 0,
        delay_us: 0,
    };

    /// Reads a plan. `delays` says whether the fault delays: then `delay` is required, otherwise it
    /// is refused. `None` for what is not a plan.
    pub(crate) fn parse(text: &[u8], delays: bool) -> Option<Self> {
        if text.len() > MAX_TEXT {
            return None;
        }
        let mut words = text
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());

        let mut plan = Self::OFF;
        plan.when = match words.next()? {
            b"off" => return words.next().is_none().then_some(plan),
            b"every" => When::Every(positive(words.next()?)?),
            b"random" => When::Random(positive(words.next()?)?),
            _ => return None,
        };
        while let Some(word) = words.next() {
            let value = positive(words.next()?)?;
            match word {
                b"sport" => plan.sport = value.try_into().ok()?,
                b"dport" => plan.dport = value.try_into().ok()?,
                b"limit" => plan.limit = value,
                b"delay" if delays && value <= MAX_DELAY_US => plan.delay_us = value,
                _ => return None,
            }
        }
        (delays == (plan.delay_us != 0)).then_some(plan)
    }

    /// Writes the text that [`parse`](Self::parse) reads.
    pub(crate) fn write(self, text: &mut impl Write) -> Result {
        match self.when {
            When::Off => return text.write_str("off"),
            When::Every(n) => write!(text, "every {n}")?,
            When::Random(n) => write!(text, "random {n}")?,
        }
        for (word, value) in [
            (" sport ", u32::from(self.sport)),
            (" dport ", u32::from(self.dport)),
            (" limit ", self.limit),
            (" delay ", self.delay_us),
        ] {
            if value != 0 {
                write!(text, "{word}{value}")?;
            }
        }
        Ok(())
    }

    /// The fault is on, and this connection's packets are candidates.
    pub(crate) fn covers(self, ports: Ports) -> bool {
        self.when != When::Off
            && (self.sport == 0 || self.sport == ports.local)
            && (self.dport == 0 || self.dport == ports.remote)
    }

    /// Candidate number `k`, from 0, is hit.
    pub(crate) fn hits(self, seed: u64, k: u64) -> bool {
        match self.when {
            When::Off => false,
            // N is not 0; `checked_rem` says so without a panic.
            When::Every(n) => k.wrapping_add(1).checked_rem(n.into()) == Some(0),
            // The upper half of a fair 64-bit number, scaled to 0..N.
            When::Random(n) => ((scramble(seed, k) >> 32).wrapping_mul(n.into()) >> 32) == 0,
        }
    }
}

/// Number `k` of the sequence that belongs to `seed` (SplitMix64, Steele, Lea and Flood 2014).
fn scramble(seed: u64, k: u64) -> u64 {
    let z = seed.wrapping_add(k.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A decimal number greater than 0.
fn positive(word: &[u8]) -> Option<u32> {
    if !word.iter().all(u8::is_ascii_digit) {
        return None;
    }
    core::str::from_utf8(word)
        .ok()?
        .parse()
        .ok()
        .filter(|&n| n != 0)
}
