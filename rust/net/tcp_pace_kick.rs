// SPDX-License-Identifier: GPL-2.0

//! `tcp_pace_kick()`, which runs when a socket's pacing timer expires, as a function that can be
//! hooked (`net/ipv4/tcp_output.c`).

use core::{
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
    netns::Namespace, //
};

/// `enum hrtimer_restart tcp_pace_kick(struct hrtimer *timer)`.
pub(crate) enum TcpPaceKick {}

/// The prototype that the argument number below rests on; another one stops the build here.
const _: unsafe extern "C" fn(*mut bindings::hrtimer) -> bindings::hrtimer_restart =
    bindings::tcp_pace_kick;

/// The socket of the timer.
///
/// # Invariants
///
/// `sk` is a valid TCP socket, to which the timer holds a reference, for the lifetime `'a`. Nobody
/// owns it.
pub(crate) struct Call<'a> {
    sk: NonNull<bindings::sock>,
    _call: PhantomData<&'a ()>,
}

// SAFETY: The name and the argument are those of the prototype above. Nothing can be changed.
unsafe impl Function for TcpPaceKick {
    const NAME: &'static CStr = c"tcp_pace_kick";

    type Call<'a> = Call<'a>;
    type Change = core::convert::Infallible;

    unsafe fn arguments<'a>(regs: &'a Registers<'_>) -> Call<'a> {
        // SAFETY: The argument is the pacing timer of a TCP socket.
        let sk = unsafe { bindings::lowtail_pacing_timer_sock(regs.argument::<0>() as *mut _) };
        // INVARIANT: The timer held a reference when it was set, which is dropped at the end of
        // this call.
        Call {
            // SAFETY: It is the address of a socket.
            sk: unsafe { NonNull::new_unchecked(sk) },
            _call: PhantomData,
        }
    }

    fn apply(_regs: &mut Registers<'_>, change: Self::Change) {
        match change {}
    }
}

impl Call<'_> {
    /// TCP paces this socket itself, so the timer may have been set for that.
    pub(crate) fn is_paced(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::lowtail_needs_internal_pacing(self.sk.as_ptr()) }
    }

    /// Data was autocorked, or is about to be, and no TX completion has asked for a push since. A
    /// socket that is being written to just now counts when it has unsent data, whatever for.
    pub(crate) fn is_held(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::lowtail_is_held(self.sk.as_ptr()) }
    }

    /// The namespace that the socket is in.
    #[inline]
    pub(crate) fn namespace(&self) -> Namespace<'_> {
        // SAFETY: By the type invariant; a socket's namespace outlives what is done with it.
        // The CPU is an RCU reader during the call (`Registers`).
        unsafe {
            let net = (*self.sk.as_ptr()).__sk_common.skc_net.net;
            Namespace::from_raw(NonNull::new_unchecked(net))
        }
    }

    /// Tells who listens to the tracepoint `tcp_deadline`.
    pub(crate) fn trace(&self, held: bool) {
        // SAFETY: By the type invariant.
        unsafe { bindings::lowtail_trace_deadline(self.sk.as_ptr(), held) };
    }
}
