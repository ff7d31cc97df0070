// SPDX-License-Identifier: GPL-2.0

//! `tcp_wfree()`, which frees a packet's charge when the device is done with it, and wakes up a
//! socket that waits for that (TSQ, autocorking); as a function that can be hooked
//! (`net/ipv4/tcp_output.c`).

use core::{
    convert::Infallible,
    marker::PhantomData,
    ptr::NonNull, //
};

use kernel::prelude::*;

use super::{
    bindings,
    hook::{
        Function,
        Registers, //
    },
    netns::Namespace,
    packet, //
};
use crate::fault::plan::Ports;

/// `void tcp_wfree(struct sk_buff *skb)`.
pub(crate) enum TcpWfree {}

/// The prototype that the argument number below rests on; another one stops the build here.
const _: unsafe extern "C" fn(*mut bindings::sk_buff) = bindings::tcp_wfree;

/// The completion of a packet.
///
/// # Invariants
///
/// `skb` is valid and charged to a TCP socket, for the lifetime `'a`.
pub(crate) struct Completion<'a> {
    skb: NonNull<bindings::sk_buff>,
    _call: PhantomData<&'a ()>,
}

// SAFETY: The name and the argument are those of the prototype above; nothing is changed.
unsafe impl Function for TcpWfree {
    const NAME: &'static CStr = c"tcp_wfree";

    type Call<'a> = Completion<'a>;
    type Change = Infallible;

    #[inline]
    unsafe fn arguments<'a>(regs: &'a Registers<'_>) -> Completion<'a> {
        // INVARIANT: This is the destructor of a packet that is charged to a TCP socket.
        Completion {
            // SAFETY: The argument is a packet, never null.
            skb: unsafe { NonNull::new_unchecked(regs.argument::<0>() as *mut bindings::sk_buff) },
            _call: PhantomData,
        }
    }

    #[inline]
    fn apply(_regs: &mut Registers<'_>, change: Infallible) {
        match change {}
    }
}

impl Completion<'_> {
    /// It is about to wake its socket up, and no later completion could do that.
    #[inline]
    pub(crate) fn wakeup_is_due(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::lowtail_fault_wakeup_due(self.skb.as_ptr()) }
    }

    /// Takes `TSQ_THROTTLED` away, so that nobody wakes the socket up.
    pub(crate) fn lose_wakeup(&self) {
        // SAFETY: By the type invariant; a bit operation, which needs no lock.
        unsafe { bindings::lowtail_fault_lose_wakeup(self.skb.as_ptr()) };
    }

    /// The connection's ports.
    pub(crate) fn ports(&self) -> Ports {
        // SAFETY: By the type invariant.
        unsafe { packet::ports(self.skb) }
    }

    /// The namespace that the socket is in.
    pub(crate) fn namespace(&self) -> Namespace<'_> {
        // SAFETY: By the type invariant; the CPU is an RCU reader during the call (`Registers`).
        unsafe { packet::namespace(self.skb) }
    }
}
