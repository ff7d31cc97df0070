// SPDX-License-Identifier: GPL-2.0

//! `dev_hard_start_xmit()`, which hands packets to a device after every qdisc, as a function that
//! can be hooked (`net/core/dev.c`); and completions that come later than the packet
//! (`completion.c`).

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

/// `struct sk_buff *dev_hard_start_xmit(struct sk_buff *first, struct net_device *dev,
/// struct netdev_queue *txq, int *ret)`.
pub(crate) enum DevHardStartXmit {}

/// The prototype that the argument number below rests on; another one stops the build here.
const _: unsafe extern "C" fn(
    *mut bindings::sk_buff,
    *mut bindings::net_device,
    *mut bindings::netdev_queue,
    *mut c_int,
) -> *mut bindings::sk_buff = bindings::dev_hard_start_xmit;

/// The packets that a device is about to get.
///
/// # Invariants
///
/// `first` is null, or the head of a list of valid packets that the caller owns, for the lifetime
/// `'a`.
pub(crate) struct Transmission<'a> {
    first: *mut bindings::sk_buff,
    _call: PhantomData<&'a ()>,
}

// SAFETY: The name and the argument are those of the prototype above; nothing is changed.
unsafe impl Function for DevHardStartXmit {
    const NAME: &'static CStr = c"dev_hard_start_xmit";

    type Call<'a> = Transmission<'a>;
    type Change = Infallible;

    #[inline]
    unsafe fn arguments<'a>(regs: &'a Registers<'_>) -> Transmission<'a> {
        // INVARIANT: The caller hands the packets over.
        Transmission {
            first: regs.argument::<0>() as *mut bindings::sk_buff,
            _call: PhantomData,
        }
    }

    #[inline]
    fn apply(_regs: &mut Registers<'_>, change: Infallible) {
        match change {}
    }
}

impl Transmission<'_> {
    /// Calls `f` for each packet whose completion a TCP socket waits for.
    pub(crate) fn for_each_charged(&self, mut f: impl FnMut(Charged<'_>)) {
        let mut next = self.first;
        while let Some(skb) = NonNull::new(next) {
            // SAFETY: By the type invariant.
            next = unsafe { bindings::lowtail_fault_next(skb.as_ptr()) };
            // SAFETY: By the type invariant.
            if unsafe { bindings::lowtail_fault_is_charged(skb.as_ptr()) } {
                // INVARIANT: Just tested.
                f(Charged {
                    skb,
                    _call: PhantomData,
                });
            }
        }
    }
}

/// A packet whose completion a TCP socket waits for.
///
/// # Invariants
///
/// `skb` is valid, owned by the caller, and charged to a TCP socket, for the lifetime `'a` or until
/// [`complete_after`](Self::complete_after) consumes the value.
pub(crate) struct Charged<'a> {
    skb: NonNull<bindings::sk_buff>,
    _call: PhantomData<&'a mut ()>,
}

impl<'a> Charged<'a> {
    /// The connection's ports.
    pub(crate) fn ports(&self) -> Ports {
        // SAFETY: By the type invariant.
        unsafe { packet::ports(self.skb) }
    }

    /// The namespace that the socket is in.
    pub(crate) fn namespace(&self) -> Namespace<'a> {
        // SAFETY: By the type invariant. The charge keeps the socket, wherever it moves; the CPU is
        // an RCU reader during the call (`Registers`).
        unsafe { packet::namespace(self.skb) }
    }

    /// Lets the socket believe for `usecs` µs that the device still has the packet.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also when there are no [`Completions`]; the packet is then completed when the
    /// device says so.
    pub(crate) fn complete_after(self, usecs: u32) -> Result {
        // SAFETY: By the type invariant. The charge moves, and `self` is gone.
        if unsafe { bindings::lowtail_fault_complete_after(self.skb.as_ptr(), usecs) } {
            Ok(())
        } else {
            Err(ENOMEM)
        }
    }
}

/// The queue of completions that are to come. Dropped, it lets all of them come at once, so it has
/// to be dropped after the hook that adds to it.
pub(crate) struct Completions(());

impl Completions {
    /// An empty queue. There is one in the module.
    ///
    /// # Errors
    ///
    /// `EBUSY` when there is one already.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: Initialises statics once, before packets are put there.
        if unsafe { bindings::lowtail_fault_completions_init() } {
            Ok(Self(()))
        } else {
            Err(EBUSY)
        }
    }
}

impl Drop for Completions {
    fn drop(&mut self) {
        // SAFETY: Initialised by `new`.
        unsafe { bindings::lowtail_fault_completions_flush() };
    }
}
