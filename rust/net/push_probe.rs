// SPDX-License-Identifier: GPL-2.0

//! A socket whose writes pass through `tcp_push()` and go nowhere, to see by effect whether a hook
//! on that function is in effect.

use core::ptr::NonNull;

use kernel::{
    error::to_result,
    prelude::*, //
};

use super::bindings;

/// A connection to nobody, in the initial namespace, in repair mode (`TCP_REPAIR`): no packet
/// leaves when it is made, written to or dropped.
///
/// # Invariants
///
/// `socket` is valid and owned.
pub(crate) struct PushProbe {
    socket: NonNull<bindings::socket>,
}

impl PushProbe {
    /// Makes one. May sleep.
    ///
    /// # Errors
    ///
    /// `ENETUNREACH` when the loopback device is down, `ENOMEM`, and what else `connect()` returns.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: Makes a socket of its own.
        let socket = kernel::error::from_err_ptr(unsafe { bindings::lowtail_probe_open() })?;
        // INVARIANT: Just made.
        Ok(Self {
            socket: NonNull::new(socket).ok_or(ENOMEM)?,
        })
    }

    /// Who it is, for comparison with [`Call::identity`](super::tcp_push::Call::identity).
    pub(crate) fn identity(&self) -> usize {
        // SAFETY: By the type invariant.
        unsafe { bindings::lowtail_probe_sock(self.socket.as_ptr()) as usize }
    }

    /// Writes one byte. May sleep.
    ///
    /// # Errors
    ///
    /// What `sendmsg()` returns.
    pub(crate) fn push(&self) -> Result {
        // SAFETY: By the type invariant.
        to_result(unsafe { bindings::lowtail_probe_push(self.socket.as_ptr()) })
    }
}

impl Drop for PushProbe {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::lowtail_probe_close(self.socket.as_ptr()) };
    }
}
