// SPDX-License-Identifier: GPL-2.0

//! Protective Load Balancing: a connection that stays congested changes its flow label, and so its
//! path (`net/ipv4/tcp_plb.c`; Qureshi et al., SIGCOMM 2022).

use kernel::prelude::*;

use super::{
    bindings,
    cong::CongestionControl,
    sock::{
        context,
        Sock, //
    }, //
};

/// A connection's PLB state (`struct tcp_plb_state`).
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Plb(bindings::tcp_plb_state);

// SAFETY: Integers only; all zero is what `tcp_plb_init()` sets.
unsafe impl Zeroable for Plb {}

impl Plb {
    /// A connection that was never congested (`tcp_plb_init()`).
    pub(crate) fn new() -> Self {
        pin_init::zeroed()
    }
}

/// What a connection's algorithm tells PLB; `get` finds the state in the private data. PLB does
/// nothing while `net.ipv4.tcp_plb_enabled` is off, which it mostly is: who calls often looks first.
impl<A: CongestionControl, C: context::Owned> Sock<'_, A, C> {
    /// Accounts a round trip in which `ce_ratio` of 256 packets were marked
    /// (`tcp_plb_update_state()`), and changes the path if it is time to.
    pub(crate) fn plb_round(&mut self, get: fn(&mut A::Data) -> &mut Plb, ce_ratio: u32) {
        let plb = &raw mut get(self.data_mut()).0;
        // SAFETY: The socket is valid and owned by the invariants of `Sock`, and so is its private
        // data, which nobody else refers to meanwhile.
        unsafe {
            bindings::tcp_plb_update_state(self.as_ptr(), plb, ce_ratio as c_int);
            bindings::tcp_plb_check_rehash(self.as_ptr(), plb);
        }
    }

    /// Changes the path if it is time to (`tcp_plb_check_rehash()`).
    #[inline]
    pub(crate) fn plb_check_rehash(&mut self, get: fn(&mut A::Data) -> &mut Plb) {
        if self.plb_enabled() != 0 {
            let plb = &raw mut get(self.data_mut()).0;
            // SAFETY: As in `plb_round`.
            unsafe { bindings::tcp_plb_check_rehash(self.as_ptr(), plb) };
        }
    }

    /// Accounts an RTO (`tcp_plb_update_state_upon_rto()`).
    pub(crate) fn plb_upon_rto(&mut self, get: fn(&mut A::Data) -> &mut Plb) {
        let plb = &raw mut get(self.data_mut()).0;
        // SAFETY: As in `plb_round`.
        unsafe { bindings::tcp_plb_update_state_upon_rto(self.as_ptr(), plb) };
    }
}
