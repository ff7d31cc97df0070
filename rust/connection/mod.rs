// SPDX-License-Identifier: GPL-2.0

//! What happens to a connection's window, whichever of the two algorithms decides how far down it
//! goes: `tcp_cong_control()` and `tcp_cwnd_reduction()` of `net/ipv4/tcp_input.c`, and the floor.
//!
//! The decisions are those of [`dctcp`](super::dctcp), which knows no socket; here sockets are read
//! and written.

pub(super) mod idle;
mod pacing;
pub(super) mod seen;

use kernel::prelude::*;

use super::{
    dctcp::{
        alpha,
        floor::{
            Floor,
            MIN_CWND, //
        },
        prr, //
    },
    net::{
        cong::{
            Ack,
            CaState,
            CongestionControl, //
        },
        plb::Plb,
        sock::{
            context::{
                Control,
                Init,
                Query,
                Window, //
            },
            jiffies32,
            Sock,
            INFINITE_SSTHRESH, //
        }, //
    },
    ALPHA_ON_INIT,
    RTO_FLOOR, //
};

pub(super) use pacing::{
    note_lossy_rtt,
    pace, //
};
use seen::Counter;

/// A connection's state, shared by both algorithms.
#[derive(Clone, Copy, Zeroable)]
pub(super) struct Connection {
    /// When SND.UNA reaches this, the observation window is over (RFC 8257's WindowEnd).
    pub(super) next_seq: u32,
    /// `delivered` when the observation window began.
    pub(super) old_delivered: u32,
    /// `delivered_ce` when the observation window began.
    pub(super) old_delivered_ce: u32,
    /// The estimated fraction of marked packets, of 1024.
    pub(super) alpha: u32,
    /// RCV.NXT before the last segment: where an ACK with the old CE state ends.
    pub(super) prior_rcv_nxt: u32,
    /// The window before the last reduction, in packets, for undo.
    pub(super) loss_cwnd: u32,
    /// SND.NXT up to which underuse of the window has been judged.
    pub(super) judged: u32,
    /// When core TCP was last about to send, in jiffies.
    pub(super) asked: u32,
    /// `write_seq` then: data up to here is not newly queued.
    pub(super) queued: u32,
    /// `snd_wnd` then, or after the last ACK of something in flight; in bytes.
    pub(super) peer_window: u32,
    /// SND.NXT after which idle time has been measured.
    pub(super) measured: u32,
    /// The last segment that arrived was marked.
    pub(super) ce_state: bool,
    /// The window is on its way down to ssthresh ([`CaState::is_reducing`]). Core TCP changes the
    /// state by `set_state` only, and to ask for it each time is a call into C.
    pub(super) reducing: bool,
    /// An ACK is being processed, and `cong_control` will follow.
    pub(super) in_ack: bool,
    /// This algorithm turned TCP's own pacing on, and has to turn it off again.
    pub(super) asked_for_pacing: bool,
    /// The window that is wanted, where it is below 2 packets ([`Fraction::to_raw`]).
    pub(super) fraction: u32,
    /// `fraction` before the last reduction, for undo.
    pub(super) loss_fraction: u32,
    /// The RTT that pacing below the floor stands on, in µs; 0 when there is no such pacing.
    pub(super) paced_rtt_us: u32,
    /// The RTT when a loss was last seen, in µs; 0 when there is no such pacing.
    pub(super) lossy_rtt_us: u32,
    /// SND.NXT when the start of what follows was last held back.
    pub(super) spread_at: u32,
    /// Protective load balancing.
    pub(super) plb: Plb,
}

/// The handshake is over, and core TCP has set the initial window: to 1 when a SYN was sent three
/// times.
pub(super) fn begin<A>(sk: &mut Sock<'_, A, Init>)
where
    A: CongestionControl<Data = Connection>,
{
    *sk.data_mut() = Connection {
        prior_rcv_nxt: sk.rcv_nxt(),
        alpha: ALPHA_ON_INIT.get(),
        judged: sk.snd_nxt(),
        asked: jiffies32(),
        queued: sk.write_seq(),
        peer_window: sk.snd_wnd(),
        measured: sk.snd_nxt().wrapping_sub(1),
        reducing: sk.ca_state().is_reducing(),
        plb: Plb::new(),
        ..observation_window(sk)
    };
    seen::count(sk, Counter::Connections);
    hold_floor(sk);
    if sk.is_passive_open() {
        pace(sk);
    }
}

/// A connection whose observation window begins now; the rest is zero.
fn observation_window<A, C>(sk: &Sock<'_, A, C>) -> Connection
where
    A: CongestionControl<Data = Connection>,
{
    Connection {
        next_seq: sk.snd_nxt(),
        old_delivered: sk.delivered(),
        old_delivered_ce: sk.delivered_ce(),
        ..pin_init::zeroed()
    }
}

/// What the observation window has delivered so far.
#[inline(always)]
pub(super) fn observed<A, C>(sk: &Sock<'_, A, C>, connection: &Connection) -> alpha::Window
where
    A: CongestionControl<Data = Connection>,
{
    alpha::Window {
        delivered: sk.delivered().wrapping_sub(connection.old_delivered),
        delivered_ce: sk.delivered_ce().wrapping_sub(connection.old_delivered_ce),
    }
}

/// An ACK is about to change the congestion state.
#[inline(always)]
pub(super) fn begin_ack<A>(sk: &mut Sock<'_, A, Control>)
where
    A: CongestionControl<Data = Connection>,
{
    idle::judge_underuse(sk);
    // With nothing out there is no loss to find, and `cong_control` may not follow.
    sk.data_mut().in_ack = sk.packets_out() != 0;
}

/// The end of an ACK: the window goes down by PRR, or up by Reno, and the pacing rate follows
/// (`tcp_cong_control()` without `cong_control`).
#[inline(always)]
pub(super) fn control_window<A>(sk: &mut Sock<'_, A, Control>, ack: Ack)
where
    A: CongestionControl<Data = Connection>,
{
    let peer_window = sk.snd_wnd();
    let connection = sk.data_mut();
    connection.in_ack = false;
    // Idle time is measured when the peer's window changes while nothing is in flight, that is by
    // ACKs that end before they come here.
    connection.peer_window = peer_window;

    let paced = connection.fraction != 0;
    if connection.reducing {
        reduce(sk.reborrow(), ack.delivered, ack.lost, ack.advanced());
    } else if may_raise(sk, ack) {
        if !paced {
            sk.reno_cong_avoid(ack.ack, ack.delivered);
        }
        sk.set_snd_cwnd_stamp(jiffies32());
    }
    if paced {
        pacing::raise_fraction(sk.reborrow(), ack.delivered);
    }
    hold_floor(sk);
    pace(sk);
}

/// Whether an ACK may raise the window (`tcp_may_raise_cwnd()`): with much reordering on the path
/// any delivery counts, otherwise only what is acknowledged in order.
#[inline(always)]
fn may_raise<A>(sk: &Sock<'_, A, Control>, ack: Ack) -> bool
where
    A: CongestionControl<Data = Connection>,
{
    ack.acknowledged_data() || (ack.progressed() && sk.reordering() > sk.sysctl_reordering())
}

/// One step of PRR (`tcp_cwnd_reduction()`), after an ACK as [`prr::Ack`] has it. The numbers are
/// passed one by one, in registers.
#[inline(never)]
fn reduce<A>(mut sk: Sock<'_, A, Control>, delivered: u32, lost: u32, advanced: bool)
where
    A: CongestionControl<Data = Connection>,
{
    let reduction = prr::Reduction {
        ssthresh: sk.snd_ssthresh(),
        prior_cwnd: sk.prior_cwnd(),
        delivered: sk.prr_delivered(),
        out: sk.prr_out(),
        in_flight: sk.packets_in_flight(),
    };
    let ack = prr::Ack {
        delivered,
        lost,
        advanced,
    };
    if let Some(step) = reduction.step(ack) {
        sk.set_prr_delivered(step.delivered);
        sk.set_snd_cwnd(step.cwnd);
    }
}

/// What core TCP leaves to the owner of the window when the congestion state changes to `new`.
pub(super) fn follow_state<A>(sk: &mut Sock<'_, A, Control>, new: CaState)
where
    A: CongestionControl<Data = Connection>,
{
    let old = sk.ca_state();
    sk.data_mut().reducing = new.is_reducing();

    // The end of CWR, or of a Recovery that was not undone (`tcp_end_cwnd_reduction()`).
    let ends = match (old, new) {
        (CaState::Cwr, CaState::Open | CaState::Disorder) => true,
        (CaState::Recovery, CaState::Open | CaState::Disorder) => sk.undo_marker() != 0,
        _ => false,
    };
    if ends && sk.snd_ssthresh() < INFINITE_SSTHRESH {
        sk.set_snd_cwnd(sk.snd_ssthresh());
        sk.set_snd_cwnd_stamp(jiffies32());
    }

    // Recovery that begins by the reordering timer retransmits at once, without an ACK whose end
    // would reduce the window first (`tcp_rack_reo_timeout()`).
    if new == CaState::Recovery
        && old != CaState::Recovery
        && !sk.data().in_ack
        && sk.reordering_timer_fired()
    {
        reduce(sk.reborrow(), 1, 0, false);
    }

    // After an RTO core TCP has just set the window to what is in flight and one packet.
    hold_floor_in(sk, new);
}

/// Core TCP is about to look at the window.
#[inline(always)]
pub(super) fn prepare_window<A>(sk: &mut Sock<'_, A, Control>)
where
    A: CongestionControl<Data = Connection>,
{
    idle::judge_underuse(sk);
    idle::restart_after_idle(sk);
    pacing::spread_starts(sk);
    hold_floor(sk);
}

/// Raises the window to the floor.
#[inline(always)]
fn hold_floor<A, C>(sk: &mut Sock<'_, A, C>)
where
    A: CongestionControl<Data = Connection>,
    C: Window,
{
    if sk.snd_cwnd() < MIN_CWND {
        raise_to_floor(sk.reborrow());
    }
}

#[cold]
fn raise_to_floor<A, C>(mut sk: Sock<'_, A, C>)
where
    A: CongestionControl<Data = Connection>,
    C: Window,
{
    let state = sk.ca_state();
    hold_floor_in(&mut sk, state);
}

/// The window that follows when a reduction is undone and `cwnd` packets would: the floor holds.
pub(super) fn hold_undone<A>(sk: &mut Sock<'_, A, Query>, cwnd: u32) -> u32
where
    A: CongestionControl<Data = Connection>,
{
    let held = Floor::Held.apply(cwnd);
    if held != cwnd {
        seen::raised(sk, sk.ca_state(), cwnd, held);
    }
    held
}

/// Raises the window to the floor that holds in `state`.
fn hold_floor_in<A, C>(sk: &mut Sock<'_, A, C>, state: CaState)
where
    A: CongestionControl<Data = Connection>,
    C: Window,
{
    let cwnd = sk.snd_cwnd();
    let held = Floor::for_state(state == CaState::Loss, RTO_FLOOR.get()).apply(cwnd);
    if held != cwnd {
        sk.set_snd_cwnd(held);
        seen::raised(sk, state, cwnd, held);
    }
}
