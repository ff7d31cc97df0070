// SPDX-License-Identifier: GPL-2.0

//! The decisions of the fault module, as functions of plain numbers: which packets a fault may hit,
//! and which of them it does hit.
//!
//! Nothing here knows a kernel type, allocates, locks or can panic; the same files are tested on
//! the host (`selftests/faults/check`).

pub(crate) mod plan;
pub(crate) mod segment;
