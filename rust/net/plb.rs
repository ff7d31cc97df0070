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

    /// Accounts a round trip in which `ce_ratio` of 256 packets were marked
    /// (`tcp_plb_update_state()`).
    pub(crate) fn update<A: CongestionControl, C: context::Owned>(
        &mut self,
        sk: &mut Sock<'_, A, C>,
        ce_ratio: u32,
    ) {
        // SAFETY: The socket is valid and owned by the invariants of `Sock`.
        unsafe { bindings::tcp_plb_update_state(sk.as_ptr(), &mut self.0, ce_ratio as c_int) };
    }

    /// Changes the path if it is time to (`tcp_plb_check_rehash()`).
    pub(crate) fn check_rehash<A: CongestionControl, C: context::Owned>(
        &mut self,
        sk: &mut Sock<'_, A, C>,
    ) {
        // SAFETY: The socket is valid and owned by the invariants of `Sock`.
        unsafe { bindings::tcp_plb_check_rehash(sk.as_ptr(), &mut self.0) };
    }

    /// Accounts an RTO (`tcp_plb_update_state_upon_rto()`).
    pub(crate) fn update_upon_rto<A: CongestionControl, C: context::Owned>(
        &mut self,
        sk: &mut Sock<'_, A, C>,
    ) {
        // SAFETY: The socket is valid and owned by the invariants of `Sock`.
        unsafe { bindings::tcp_plb_update_state_upon_rto(sk.as_ptr(), &mut self.0) };
    }
}
