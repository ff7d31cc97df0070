// SPDX-License-Identifier: GPL-2.0

//! `tcp_push()`, the function that core TCP calls when a write is to be sent, as a function that
//! can be hooked (`net/ipv4/tcp.c`).

use core::ptr::NonNull;

use kernel::{
    bindings::tracepoint,
    jump_label::static_branch_unlikely,
    prelude::*, //
};

use super::{
    bindings,
    hook::{
        Function,
        Registers, //
    },
    netns::Namespace, //
};

/// `void tcp_push(struct sock *sk, int flags, int mss_now, int nonagle, int size_goal)`.
pub(crate) enum TcpPush {}

/// The prototype that the argument numbers below rest on; another one stops the build here.
const _: unsafe extern "C" fn(*mut bindings::sock, c_int, c_int, c_int, c_int) = bindings::tcp_push;

// Not `expect`: the lint fires on amd64 and does not on arm64.
#[allow(
    improper_ctypes,
    reason = "a lock_class_key in it is empty without lockdep; only its address is taken"
)]
extern "C" {
    /// Defined by `trace.h`.
    static __tracepoint_tcp_push_verdict: tracepoint;
}

/// The arguments of a call.
///
/// # Invariants
///
/// `sk` is a valid TCP socket, owned by the caller of `tcp_push()`, for the lifetime `'a`.
pub(crate) struct Call<'a> {
    sk: NonNull<bindings::sock>,
    regs: &'a Registers<'a>,
}

/// What [`Call::bound_hold`] found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Nothing is about to be held, or more is about to be held in a hold that has its timer.
    None,
    /// A hold is about to begin: the buffer is about to be held, and a timer that is set already expires in time. A
    /// completion may free it before `tcp_push()` looks itself; nothing makes it hold more.
    Bounded,
    /// The same, and a timer had to be set.
    BoundedAnew,
}

/// What a hook may change.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    /// `size_goal` becomes 0. `tcp_push()` reads it in one place only, the test whether the last
    /// buffer is small enough to be autocorked, so this push is not.
    pub(crate) autocork_off: bool,
    /// `nonagle` becomes `TCP_NAGLE_OFF`: this push is sent as if TCP_NODELAY were set. MSG_MORE
    /// keeps its meaning, since `tcp_push()` looks at it later.
    pub(crate) nagle_off: bool,
}

// SAFETY: The name and the arguments are those of the prototype above. `size_goal` is compared with
// a length and nothing else; `TCP_NAGLE_OFF` is what callers pass for sockets with TCP_NODELAY.
unsafe impl Function for TcpPush {
    const NAME: &'static CStr = c"tcp_push";

    type Call<'a> = Call<'a>;
    type Change = Change;

    #[inline]
    unsafe fn arguments<'a>(regs: &'a Registers<'_>) -> Call<'a> {
        // INVARIANT: Callers of `tcp_push()` own the socket that they pass.
        Call {
            // SAFETY: The first argument of `tcp_push()` is a socket, never null.
            sk: unsafe { NonNull::new_unchecked(regs.argument::<0>() as *mut bindings::sock) },
            regs,
        }
    }

    #[inline]
    fn apply(regs: &mut Registers<'_>, change: Change) {
        if change.nagle_off {
            regs.set_argument::<3>(bindings::LOWTAIL_NAGLE_OFF as usize);
        }
        if change.autocork_off {
            regs.set_argument::<4>(0);
        }
    }
}

impl Call<'_> {
    /// The socket's own Nagle bits (`tp->nonagle`).
    #[inline]
    pub(crate) fn socket_nonagle(&self) -> u8 {
        // SAFETY: By the type invariant.
        unsafe { bindings::lowtail_nonagle(self.sk.as_ptr()) }
    }

    /// The argument `nonagle`.
    #[inline]
    pub(crate) fn nonagle(&self) -> c_int {
        self.regs.argument::<3>() as c_int
    }

    /// The argument `flags` has MSG_MORE.
    #[inline]
    pub(crate) fn more(&self) -> bool {
        self.regs.argument::<1>() as u32 & bindings::MSG_MORE != 0
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

    /// The argument `flags` has MSG_SPLICE_PAGES: the data came as pages that somebody spliced, or
    /// that a part of the kernel made.
    #[inline]
    pub(crate) fn spliced(&self) -> bool {
        self.regs.argument::<1>() as u32 & bindings::LOWTAIL_MSG_SPLICE_PAGES != 0
    }

    /// The socket's upper-layer protocol is kTLS, which hands its records over as pages
    /// (`tls_push_sg()`).
    pub(crate) fn has_ktls(&self) -> bool {
        // SAFETY: By the type invariant; the owner of a socket is the one who changes its ULP.
        unsafe { bindings::lowtail_has_ktls(self.sk.as_ptr()) }
    }

    /// The socket's packets go to this very host.
    pub(crate) fn on_loopback_route(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::lowtail_on_loopback_route(self.sk.as_ptr()) }
    }

    /// If `tcp_push()` is about to hold the last buffer (`tcp_should_autocork()`), makes sure that
    /// the socket is pushed within `usecs` microseconds, unless a TX completion does it first.
    ///
    /// The timer is the socket's own, for pacing. The kernel knows how it goes with sockets that
    /// are owned, closed or freed, and no code of this module is behind it.
    #[inline]
    pub(crate) fn bound_hold(&self, usecs: u32) -> Hold {
        let size_goal = self.regs.argument::<4>() as c_int;
        // SAFETY: By the type invariant.
        match unsafe { bindings::lowtail_bound_hold(self.sk.as_ptr(), size_goal, usecs) } {
            bindings::LOWTAIL_HELD => Hold::Bounded,
            bindings::LOWTAIL_HELD_AND_SET => Hold::BoundedAnew,
            _ => Hold::None,
        }
    }

    /// Who the socket is, for comparison only.
    #[inline]
    pub(crate) fn identity(&self) -> usize {
        self.sk.as_ptr() as usize
    }

    /// Tells who listens to the tracepoint `tcp_push_verdict`.
    #[inline]
    pub(crate) fn trace(&self, verdict: u32, held: bool, spliced: bool) {
        // As `declare_trace!` does it for the kernel's own tracepoints: a no-op in the code until
        // somebody listens.
        // SAFETY: A tracepoint's key may be looked at at any time.
        let listened_to =
            unsafe { static_branch_unlikely!(__tracepoint_tcp_push_verdict, tracepoint, key) };
        if listened_to {
            // SAFETY: By the type invariant.
            unsafe { bindings::lowtail_trace_push(self.sk.as_ptr(), verdict, held, spliced) };
        }
    }
}
