// SPDX-License-Identifier: GPL-2.0

//! What the oracle needs to know of the module's inside. This file is not in `rust/net`; the build
//! puts it beside the copies of those that are.

use core::mem::size_of;

use super::{bindings, plb::Plb, sock::Sock, sock::context};
use super::super::{ALPHA_ON_INIT, DctcpFloor, PACE_BELOW_FLOOR, RTO_FLOOR, SHIFT_G};
use crate::{
    Module,
    ffi::{self, oracle_private},
};

/// This copy of the module.
pub(crate) const MODULE: Module = Module {
    load,
    set_parameter,
    get_private,
    is_judged,
    judge,
    raised,
};

/// Without pacing below the floor, which stock has not: from a threshold of 2 on it may differ.
fn load() {
    PACE_BELOW_FLOOR.set(false);
    super::super::load();
}

fn set_parameter(which: u32, value: u32) {
    match which {
        ffi::ORACLE_SHIFT_G => SHIFT_G.set(value),
        ffi::ORACLE_ALPHA_ON_INIT => ALPHA_ON_INIT.set(value),
        ffi::ORACLE_RTO_FLOOR => RTO_FLOOR.set(value != 0),
        _ => {}
    }
}

/// # Safety
///
/// `tp` is a connection of this module's, and nobody else uses it.
unsafe fn sock<'a>(tp: *mut ffi::tcp_sock) -> Sock<'a, DctcpFloor, context::Control> {
    // SAFETY: `struct tcp_sock` begins with `struct sock`; Reno's private data is the same.
    unsafe { Sock::from_raw(tp.cast()) }
}

unsafe fn get_private(tp: *mut ffi::tcp_sock) -> oracle_private {
    // SAFETY: As the caller says.
    let sock = unsafe { sock(tp) };
    let data = sock.data();
    // SAFETY: `Plb` is transparent.
    let plb: bindings::tcp_plb_state = unsafe { core::mem::transmute_copy(&data.plb) };
    const { assert!(size_of::<Plb>() == size_of::<bindings::tcp_plb_state>()) };
    oracle_private {
        old_delivered: data.old_delivered,
        old_delivered_ce: data.old_delivered_ce,
        prior_rcv_nxt: data.prior_rcv_nxt,
        alpha: data.alpha,
        next_seq: data.next_seq,
        ce_state: data.ce_state.into(),
        loss_cwnd: data.loss_cwnd,
        plb_rounds: plb.consec_cong_rounds().into(),
        plb_pause_until: plb.pause_until,
    }
}

fn raised() -> u64 {
    super::super::connection::seen::RAISED.load(core::sync::atomic::Ordering::Relaxed)
}

unsafe fn is_judged(tp: *mut ffi::tcp_sock) -> bool {
    // SAFETY: As the caller says.
    let sock = unsafe { sock(tp) };
    sock.data().judged == sock.snd_nxt()
}

unsafe fn judge(tp: *mut ffi::tcp_sock) {
    // SAFETY: As the caller says.
    super::super::connection::idle::judge_underuse(&mut unsafe { sock(tp) });
}
