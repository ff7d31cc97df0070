// SPDX-License-Identifier: GPL-2.0

//! What a congestion control tells of a connection: to the state of its network namespace, and to
//! whoever listens to the tracepoints (`trace_floor.h`).

use core::ptr::NonNull;

use kernel::sync::rcu;

use super::{
    bindings,
    cong::{
        CaState,
        CongestionControl, //
    },
    netns::{
        Namespace,
        PerNamespace, //
    },
    sock::{
        context,
        Sock, //
    }, //
};

impl<A: CongestionControl, C: context::Owned> Sock<'_, A, C> {
    /// Runs `f` on the value of `T` in the socket's namespace, where it still has one.
    pub(crate) fn with_state<T: PerNamespace>(&self, f: impl FnOnce(&T)) {
        let _reader = rcu::read_lock();
        // SAFETY: By the type invariant the socket is valid, and a socket's namespace outlives what
        // is done with the socket. This is an RCU reader to the end of the function.
        let namespace = unsafe {
            let net = (*self.as_ptr()).__sk_common.skc_net.net;
            Namespace::from_raw(NonNull::new_unchecked(net))
        };
        if let Some(state) = namespace.state::<T>() {
            f(state);
        }
    }

    /// Tracepoint `dctcp_floor_raised`: the window goes from `prior` packets to `cwnd` in `state`;
    /// `alpha` is of 1024.
    pub(crate) fn trace_raised(&self, state: CaState, prior: u32, cwnd: u32, alpha: u32) {
        // SAFETY: By the type invariant.
        unsafe {
            bindings::lowtail_trace_floor_raised(self.as_ptr(), state as u8, prior, cwnd, alpha)
        };
    }

    /// Tracepoint `dctcp_floor_paced`: the pacing rate, which has just been set, follows a window of
    /// `window` 1/65536 packets and an RTT of `rtt_us` µs.
    pub(crate) fn trace_paced(&self, window: u32, rtt_us: u32, alpha: u32) {
        // SAFETY: By the type invariant.
        unsafe { bindings::lowtail_trace_floor_paced(self.as_ptr(), window, rtt_us, alpha) };
    }
}
