// SPDX-License-Identifier: GPL-2.0

//! The text of a sysctl: written for the reader, and read when somebody writes.
//!
//! Nothing here knows a kernel type or can panic, so that the same file is compiled into the
//! modules (`rust/net/sysctl.rs`) and into the host's tests (`selftests/host`).

use core::{
    fmt::Write,
    ops::RangeInclusive, //
};

/// Longest text of a sysctl, with the NUL, in bytes.
pub(crate) const MAX_LEN: usize = 64;

/// A text that is being written; what does not fit is cut off.
pub(crate) struct Text {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl Text {
    /// An empty text.
    pub(crate) fn new() -> Self {
        Self {
            bytes: [0; MAX_LEN],
            len: 0,
        }
    }

    /// The [`MAX_LEN`] bytes, the last of them NUL, for C to read and to replace.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8; MAX_LEN] {
        &mut self.bytes
    }

    /// What stands before the NUL, without blanks at either end; `None` when C filled the text to
    /// its end, because then the rest of a longer one was cut off.
    pub(crate) fn trimmed(&self) -> Option<&[u8]> {
        let end = self.bytes.iter().position(|&b| b == 0)?;
        if end == MAX_LEN - 1 {
            return None;
        }
        self.bytes.get(..end).map(<[u8]>::trim_ascii)
    }
}

impl Write for Text {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        for &byte in s.as_bytes() {
            // The last byte stays NUL.
            if self.len < MAX_LEN - 1 {
                if let Some(slot) = self.bytes.get_mut(self.len) {
                    *slot = byte;
                    self.len += 1;
                }
            }
        }
        Ok(())
    }
}

/// The decimal number `text`, if it lies within `range`. A `+` before it is allowed, as by the
/// kernel's `kstrtouint()`.
pub(crate) fn number(text: &[u8], range: RangeInclusive<u32>) -> Option<u32> {
    core::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .filter(|number| range.contains(number))
}
