// SPDX-License-Identifier: GPL-2.0

//! The lost wake-up between `tcp_push()` and `tcp_wfree()` (T1), small enough for loom to walk
//! through every order of its steps that C11's memory model allows.
//!
//! ```text
//!   tcp_push(): the second write          tcp_wfree(): the first packet's completion
//!   ─────────────────────────────         ──────────────────────────────────────────
//!   set_bit(TSQ_THROTTLED)                refcount_sub_and_test(sk_wmem_alloc)
//!   smp_mb__after_atomic()   since 6.8    ── ordered?      by the CPU, not by the source
//!   sk_wmem_alloc > truesize?             TSQ_THROTTLED?
//!     yes: hold, wait for a wake-up         yes: wake the socket up
//!     no:  send now                         no:  nobody waits
//! ```
//!
//! Each writes one variable and reads the other: unless both keep that order, both can miss what
//! the other wrote, and the second write stays until an ACK comes.

#[cfg(test)]
mod t1;
