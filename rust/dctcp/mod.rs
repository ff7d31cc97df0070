// SPDX-License-Identifier: GPL-2.0

//! The decisions of DCTCP with a floor, as functions of plain numbers.
//!
//! Nothing here knows a kernel type, allocates, locks or can panic, so that the same files are
//! compiled into `tcp_dctcp_floor.ko` and into the host's unit and property tests
//! (`selftests/host`). Windows are in packets, times in the unit that each item names.
//!
//! Arithmetic is chosen on purpose everywhere, because an overflow is a panic on kernels built
//! with `CONFIG_RUST_OVERFLOW_CHECKS`: what C computes modulo 2³² is `wrapping_*` here, windows
//! saturate, and shifts are bounded by a checked parameter.

pub(crate) mod alpha;
pub(crate) mod ce;
pub(crate) mod floor;
pub(crate) mod fraction;
pub(crate) mod idle;
pub(crate) mod pacing;
pub(crate) mod prr;
