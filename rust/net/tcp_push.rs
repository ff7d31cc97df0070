// SPDX-License-Identifier: GPL-2.0

//! `tcp_push()`, the function that core TCP calls when a write is to be sent, as a function that
//! can be hooked (`net/ipv4/tcp.c`).

use core::ptr::NonNull;

use kernel::prelude::*;

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

/// The arguments of a call.
///
/// # Invariants
///
/// `sk` is a valid TCP socket, owned by the caller of `tcp_push()`, for the lifetime `'a`.
pub(crate) struct Call<'a> {
    sk: NonNull<bindings::sock>,
    regs: &'a Registers<'a>,
}

/// What a hook may change: `size_goal`, in bytes. `tcp_push()` reads it in one place only, the
/// test whether the last buffer is small enough to be autocorked, so 0 means "do not autocork".
pub(crate) struct SizeGoal(pub(crate) c_int);

// SAFETY: The name and the arguments are those of the prototype above. Any `size_goal` is safe: it
// is compared with a length, and nothing else.
unsafe impl Function for TcpPush {
    const NAME: &'static CStr = c"tcp_push";

    type Call<'a> = Call<'a>;
    type Change = SizeGoal;

    #[inline]
    unsafe fn arguments<'a>(regs: &'a Registers<'_>) -> Call<'a> {
        // INVARIANT: Callers of `tcp_push()` own the socket that they pass.
        Call {
            // SAFETY: The first argument of `tcp_push()` is a socket, never null.
            sk: unsafe { NonNull::new_unchecked(regs.argument(0) as *mut bindings::sock) },
            regs,
        }
    }

    #[inline]
    fn apply(regs: &mut Registers<'_>, SizeGoal(bytes): SizeGoal) {
        regs.set_argument(4, bytes as usize);
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
        self.regs.argument(3) as c_int
    }

    /// The argument `flags` has MSG_MORE.
    #[inline]
    pub(crate) fn more(&self) -> bool {
        self.regs.argument(1) as u32 & bindings::MSG_MORE != 0
    }

    /// The namespace that the socket is in.
    #[inline]
    pub(crate) fn namespace(&self) -> Namespace<'_> {
        // SAFETY: By the type invariant; a socket's namespace outlives what is done with it.
        unsafe {
            let net = bindings::lowtail_sock_net(self.sk.as_ptr());
            Namespace::from_raw(NonNull::new_unchecked(net))
        }
    }
}
