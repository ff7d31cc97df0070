// SPDX-License-Identifier: GPL-2.0

//! `dctcp_floor`: DCTCP whose congestion window never falls below 2 packets.
//!
//! C version of what it is made after: [`net/ipv4/tcp_dctcp.c`](srctree/net/ipv4/tcp_dctcp.c);
//! RFC 8257.
//!
//! Stock DCTCP leaves the window to core TCP, which lets it fall to one packet: entering Recovery
//! with nothing else in flight, after an RTO, after a SYN that was sent three times. One packet
//! alone costs a 200 ms timer when it is lost, and the RPC behind it waits. So this algorithm owns
//! the window (`cong_control`) and does the same as core TCP to the packet, but for the floor.
//!
//! ```text
//!  ACK ──► in_ack_event: alpha ──► (core: CA state) ──► set_state: loss, end of a reduction
//!                                                              │
//!      pacing rate ◄── floor ◄── PRR │ slow start, additive ◄── cong_control
//!
//!  send ──► before_transmit: idle time, floor ──► (core: what the window allows)
//! ```
//!
//! Without ECN the connection falls back to Reno, with the floor.

use core::pin::Pin;

use kernel::prelude::*;

use dctcp::{
    alpha,
    ce,
    floor::{
        Floor,
        MIN_CWND, //
    },
    fraction::{
        follow_rtt,
        Fraction, //
    },
    idle,
    pacing::Pace,
    prr, //
};
use net::{
    cong::{
        Ack,
        CaEvent,
        CaState,
        CongestionControl,
        Info,
        Ops,
        Registration, //
    },
    param::{
        param,
        Bool,
        Uint, //
    },
    plb::Plb,
    sock::{
        before,
        context::{
            Control,
            Info as InfoOnly,
            Init,
            Query,
            Receive,
            Window, //
        },
        jiffies32,
        random32,
        Sock,
        INFINITE_SSTHRESH, //
    }, //
};

mod dctcp;

/// The abstractions that this module stands on.
mod net {
    pub(crate) mod bindings;
    pub(crate) mod cong;
    mod layout;
    pub(crate) mod param;
    pub(crate) mod plb;
    pub(crate) mod sock;
    mod this_module;
}

module! {
    type: FloorModule,
    name: "tcp_dctcp_floor",
    authors: ["The lowtail developers"],
    description: "DCTCP whose congestion window never drops below 2 packets",
    license: "GPL v2",
}

param!(
    SHIFT_G = "dctcp_shift_g": Uint<0, { alpha::MAX_SHIFT_G }> as "uint",
    4,
    "parameter g for updating dctcp_alpha, as 1/2^g: 0 to 10"
);
param!(
    ALPHA_ON_INIT = "dctcp_alpha_on_init": Uint<0, { alpha::MAX_ALPHA }> as "uint",
    alpha::MAX_ALPHA,
    "parameter for initial alpha value: 0 to 1024"
);
param!(
    RTO_FLOOR = "rto_floor": Bool as "bool",
    true,
    "keep the window at 2 packets after an RTO too; N is RFC 5681's loss window of 1"
);

param!(
    PACE_BELOW_FLOOR = "pace_below_floor": Bool as "bool",
    false,
    "space packets out while DCTCP wants a window of less than 2"
);

static DCTCP: Ops<DctcpFloor> = Ops::new();
static RENO: Ops<RenoFloor> = Ops::new();

/// A connection's state, shared by both algorithms.
#[derive(Clone, Copy, Zeroable)]
struct Connection {
    /// When SND.UNA reaches this, the observation window is over (RFC 8257's WindowEnd).
    next_seq: u32,
    /// `delivered` when the observation window began.
    old_delivered: u32,
    /// `delivered_ce` when the observation window began.
    old_delivered_ce: u32,
    /// The estimated fraction of marked packets, of 1024.
    alpha: u32,
    /// RCV.NXT before the last segment: where an ACK with the old CE state ends.
    prior_rcv_nxt: u32,
    /// The window before the last reduction, in packets, for undo.
    loss_cwnd: u32,
    /// SND.NXT up to which underuse of the window has been judged.
    judged: u32,
    /// When core TCP was last about to send, in jiffies.
    asked: u32,
    /// `write_seq` then: data up to here is not newly queued.
    queued: u32,
    /// `snd_wnd` then, or after the last ACK of something in flight; in bytes.
    peer_window: u32,
    /// SND.NXT after which idle time has been measured.
    measured: u32,
    /// The last segment that arrived was marked.
    ce_state: bool,
    /// An ACK is being processed, and `cong_control` will follow.
    in_ack: bool,
    /// This algorithm turned TCP's own pacing on, and has to turn it off again.
    asked_for_pacing: bool,
    /// The window that is wanted, where it is below 2 packets ([`Fraction::to_raw`]).
    fraction: u32,
    /// `fraction` before the last reduction, for undo.
    loss_fraction: u32,
    /// The RTT that pacing below the floor stands on, in µs; 0 when there is no such pacing.
    paced_rtt_us: u32,
    /// SND.NXT when the start of what follows was last held back.
    spread_at: u32,
    /// Protective load balancing.
    plb: Plb,
}

/// DCTCP with the floor.
struct DctcpFloor;

#[vtable]
impl CongestionControl for DctcpFloor {
    type Data = Connection;

    const NAME: &'static CStr = c"dctcp_floor";
    const NEEDS_ECN: bool = true;

    fn init(sk: &mut Sock<'_, Self, Init>) {
        if !sk.uses_ecn() && !sk.is_unconnected() {
            // No ECN, no DCTCP. ECT was set during the handshake and must go.
            sk.switch_to(Pin::static_ref(&RENO));
            sk.clear_ect();
        }
        begin(sk);
    }

    fn in_ack_event(sk: &mut Sock<'_, Self, Control>) {
        begin_ack(sk);
        if !before(sk.snd_una(), sk.data().next_seq) {
            end_observation_window(sk);
        }
    }

    fn cong_control(sk: &mut Sock<'_, Self, Control>, ack: Ack) {
        control_window(sk, ack);
    }

    fn set_state(sk: &mut Sock<'_, Self, Control>, new: CaState) {
        if new == CaState::Recovery && sk.ca_state() != CaState::Recovery {
            let reduced = sk.ca_state() == CaState::Cwr;
            react_to_loss(sk, reduced, Fraction::lost);
        }
        follow_state(sk, new);
        let connection = sk.data();
        if new == CaState::Loss && (connection.fraction != 0 || connection.paced_rtt_us != 0) {
            // The first retransmission leaves before the next ACK.
            pace(sk);
        }
    }

    fn cwnd_event(sk: &mut Sock<'_, Self, Receive>, event: CaEvent) {
        match event {
            CaEvent::EcnIsCe => segment_arrived(sk, true),
            CaEvent::EcnNoCe => segment_arrived(sk, false),
            CaEvent::Loss => {
                sk.with_plb(|c| &mut c.plb, |sk, plb| plb.update_upon_rto(sk));
                let timed_out = if RTO_FLOOR.get() {
                    Fraction::timed_out
                } else {
                    // The loss window of one packet, clocked by ACKs.
                    |_, _| Fraction::NONE
                };
                react_to_loss(sk, false, timed_out);
            }
        }
    }

    fn tx_start(sk: &mut Sock<'_, Self, Control>) {
        // Nothing is in flight, so nothing is reordered by a change of path.
        sk.with_plb(|c| &mut c.plb, |sk, plb| plb.check_rehash(sk));
    }

    fn before_transmit(sk: &mut Sock<'_, Self, Control>) -> u32 {
        prepare_window(sk);
        sk.min_tso_segs()
    }

    fn ssthresh(sk: &mut Sock<'_, Self, Query>) -> u32 {
        let cwnd = sk.snd_cwnd();
        let connection = sk.data_mut();
        connection.loss_cwnd = cwnd;
        connection.loss_fraction = connection.fraction;
        if PACE_BELOW_FLOOR.get() {
            let fraction = Fraction::from_raw(connection.fraction);
            connection.fraction = fraction.marked(cwnd, connection.alpha).to_raw();
        }
        alpha::ssthresh_marked(cwnd, connection.alpha)
    }

    fn undo_cwnd(sk: &mut Sock<'_, Self, Query>) -> u32 {
        let connection = sk.data_mut();
        connection.fraction = connection.loss_fraction;
        Floor::Held.apply(sk.snd_cwnd().max(sk.data().loss_cwnd))
    }

    fn release(sk: &mut Sock<'_, Self, Control>) {
        // The next algorithm knows nothing of it.
        if sk.data().paced_rtt_us != 0 {
            sk.data_mut().fraction = 0;
            pace(sk);
        }
    }

    fn get_info(sk: &Sock<'_, Self, InfoOnly>) -> Info {
        let connection = sk.snapshot();
        let window = observed(sk, &connection);
        Info::Dctcp {
            enabled: true,
            ce_state: connection.ce_state,
            alpha: connection.alpha,
            ecn_bytes: sk.mss_cache().wrapping_mul(window.delivered_ce),
            total_bytes: sk.mss_cache().wrapping_mul(window.delivered),
        }
    }
}

/// What is left of it when the peer offers no ECN: Reno with the floor. Never registered.
struct RenoFloor;

#[vtable]
impl CongestionControl for RenoFloor {
    type Data = Connection;

    const NAME: &'static CStr = c"dctcpfloor-reno";

    fn init(sk: &mut Sock<'_, Self, Init>) {
        // A socket that fell back keeps this algorithm when it is connected again.
        begin(sk);
    }

    fn in_ack_event(sk: &mut Sock<'_, Self, Control>) {
        begin_ack(sk);
    }

    fn cong_control(sk: &mut Sock<'_, Self, Control>, ack: Ack) {
        control_window(sk, ack);
    }

    fn set_state(sk: &mut Sock<'_, Self, Control>, new: CaState) {
        follow_state(sk, new);
    }

    fn before_transmit(sk: &mut Sock<'_, Self, Control>) -> u32 {
        prepare_window(sk);
        sk.min_tso_segs()
    }

    fn ssthresh(sk: &mut Sock<'_, Self, Query>) -> u32 {
        sk.reno_ssthresh()
    }

    fn undo_cwnd(sk: &mut Sock<'_, Self, Query>) -> u32 {
        Floor::Held.apply(sk.reno_undo_cwnd())
    }

    fn get_info(_sk: &Sock<'_, Self, InfoOnly>) -> Info {
        Info::Dctcp {
            enabled: false,
            ce_state: false,
            alpha: 0,
            ecn_bytes: 0,
            total_bytes: 0,
        }
    }
}

/// The handshake is over, and core TCP has set the initial window: to 1 when a SYN was sent three
/// times.
fn begin<A>(sk: &mut Sock<'_, A, Init>)
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
        plb: Plb::new(),
        ..observation_window(sk)
    };
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
fn observed<A, C>(sk: &Sock<'_, A, C>, connection: &Connection) -> alpha::Window
where
    A: CongestionControl<Data = Connection>,
{
    alpha::Window {
        delivered: sk.delivered().wrapping_sub(connection.old_delivered),
        delivered_ce: sk.delivered_ce().wrapping_sub(connection.old_delivered_ce),
    }
}

/// A window of data was acknowledged: PLB and alpha learn what fraction of it was marked.
fn end_observation_window(sk: &mut Sock<'_, DctcpFloor, Control>) {
    let window = observed(sk, sk.data());
    if let Some(ce_ratio) = window.ce_ratio() {
        sk.with_plb(
            |c| &mut c.plb,
            |sk, plb| {
                plb.update(sk, ce_ratio);
                plb.check_rehash(sk);
            },
        );
    }

    let (next_seq, delivered, delivered_ce) = (sk.snd_nxt(), sk.delivered(), sk.delivered_ce());
    let connection = sk.data_mut();
    connection.alpha = window.next_alpha(connection.alpha, SHIFT_G.get());
    connection.next_seq = next_seq;
    connection.old_delivered = delivered;
    connection.old_delivered_ce = delivered_ce;
}

/// The receiver's side: marks go back as ECE, and every change at once.
fn segment_arrived(sk: &mut Sock<'_, DctcpFloor, Receive>, marked: bool) {
    let Connection {
        ce_state,
        prior_rcv_nxt,
        ..
    } = *sk.data();

    let reaction = ce::on_segment(ce_state, marked, sk.is_ack_delayed());
    if reaction.ack_pending_with_old_state {
        sk.echo_congestion(ce_state);
        sk.send_ack(prior_rcv_nxt);
    }
    if reaction.ack_now {
        sk.ack_now();
    }
    sk.echo_congestion(reaction.echo);

    let rcv_nxt = sk.rcv_nxt();
    let connection = sk.data_mut();
    connection.prior_rcv_nxt = rcv_nxt;
    connection.ce_state = marked;
}

/// Loss is answered by half the window, whatever alpha says (RFC 8257 §3.5).
///
/// `ssthresh` has come just before and answered the loss as if it were a mark, but where the window
/// was being `reduced` already; so the fraction is that before it, halved.
fn react_to_loss<C: Window>(
    sk: &mut Sock<'_, DctcpFloor, C>,
    reduced: bool,
    halve: fn(Fraction, u32) -> Fraction,
) {
    let cwnd = sk.snd_cwnd();
    let connection = sk.data_mut();
    connection.loss_cwnd = cwnd;
    if reduced {
        connection.loss_fraction = connection.fraction;
    }
    if PACE_BELOW_FLOOR.get() {
        connection.fraction = halve(Fraction::from_raw(connection.loss_fraction), cwnd).to_raw();
    }
    sk.set_snd_ssthresh(alpha::ssthresh_lost(cwnd));
}

/// An ACK is about to change the congestion state.
fn begin_ack<A>(sk: &mut Sock<'_, A, Control>)
where
    A: CongestionControl<Data = Connection>,
{
    judge_underuse(sk);
    // With nothing out there is no loss to find, and `cong_control` may not follow.
    sk.data_mut().in_ack = sk.packets_out() != 0;
}

/// The end of an ACK: the window goes down by PRR, or up by Reno, and the pacing rate follows
/// (`tcp_cong_control()` without `cong_control`).
fn control_window<A>(sk: &mut Sock<'_, A, Control>, ack: Ack)
where
    A: CongestionControl<Data = Connection>,
{
    let peer_window = sk.snd_wnd();
    let connection = sk.data_mut();
    connection.in_ack = false;
    // Idle time is measured when the peer's window changes while nothing is in flight, that is by
    // ACKs that end before they come here.
    connection.peer_window = peer_window;

    if sk.ca_state().is_reducing() {
        reduce(
            sk,
            prr::Ack {
                delivered: ack.delivered,
                lost: ack.lost,
                advanced: ack.advanced(),
            },
        );
    } else if may_raise(sk, ack) {
        if sk.data().fraction == 0 {
            sk.reno_cong_avoid(ack.ack, ack.delivered);
        } else {
            raise_fraction(sk, ack);
        }
        sk.set_snd_cwnd_stamp(jiffies32());
    }
    hold_floor(sk);
    pace(sk);
}

/// What is wanted below the floor goes up, and cwnd stays at the floor until 2 are wanted. Whether
/// the application used the window is not asked: whoever sends one packet an RTT used it.
fn raise_fraction<A>(sk: &mut Sock<'_, A, Control>, ack: Ack)
where
    A: CongestionControl<Data = Connection>,
{
    let slow_start = sk.snd_cwnd() < sk.snd_ssthresh();
    let connection = sk.data_mut();
    let fraction = Fraction::from_raw(connection.fraction);
    connection.fraction = fraction.acked(ack.delivered, slow_start).to_raw();
}

/// Whether an ACK may raise the window (`tcp_may_raise_cwnd()`): with much reordering on the path
/// any delivery counts, otherwise only what is acknowledged in order.
fn may_raise<A>(sk: &Sock<'_, A, Control>, ack: Ack) -> bool
where
    A: CongestionControl<Data = Connection>,
{
    ack.acknowledged_data() || (ack.progressed() && sk.reordering() > sk.sysctl_reordering())
}

/// One step of PRR (`tcp_cwnd_reduction()`).
fn reduce<A>(sk: &mut Sock<'_, A, Control>, ack: prr::Ack)
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
    if let Some(step) = reduction.step(ack) {
        sk.set_prr_delivered(step.delivered);
        sk.set_snd_cwnd(step.cwnd);
    }
}

/// What core TCP leaves to the owner of the window when the congestion state changes to `new`.
fn follow_state<A>(sk: &mut Sock<'_, A, Control>, new: CaState)
where
    A: CongestionControl<Data = Connection>,
{
    let old = sk.ca_state();

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
        reduce(
            sk,
            prr::Ack {
                delivered: 1,
                lost: 0,
                advanced: false,
            },
        );
    }

    // After an RTO core TCP has just set the window to what is in flight and one packet.
    hold_floor_in(sk, new);
}

/// Core TCP is about to look at the window.
fn prepare_window<A>(sk: &mut Sock<'_, A, Control>)
where
    A: CongestionControl<Data = Connection>,
{
    judge_underuse(sk);
    restart_after_idle(sk);
    spread_starts(sk);
    hold_floor(sk);
}

/// A flow that wants less than a packet an RTT begins at a random moment of the time that it would
/// take for one, once for each time that nothing was in flight.
fn spread_starts<A>(sk: &mut Sock<'_, A, Control>)
where
    A: CongestionControl<Data = Connection>,
{
    let Connection {
        paced_rtt_us,
        spread_at,
        ..
    } = *sk.data();
    if paced_rtt_us == 0
        || spread_at == sk.snd_nxt()
        || sk.packets_out() != 0
        || !sk.has_unsent_data()
    {
        return;
    }
    let fraction = Fraction::from_raw(sk.data().fraction);
    if let Some(usecs) = fraction.spread(paced_rtt_us, random32()) {
        sk.data_mut().spread_at = sk.snd_nxt();
        sk.hold_back(usecs);
    }
}

/// The window decays while nothing is sent (`tcp_slow_start_after_idle_check()`). Core TCP measures
/// the idle time when data is queued, and when the peer's window changes while data waits; we, when
/// it is about to send next, which it is right after that. Data that waits longer, for a cork or for
/// pacing, is not measured again.
fn restart_after_idle<A>(sk: &mut Sock<'_, A, Control>)
where
    A: CongestionControl<Data = Connection>,
{
    let (now, write_seq, snd_wnd, snd_nxt) =
        (jiffies32(), sk.write_seq(), sk.snd_wnd(), sk.snd_nxt());
    let connection = sk.data_mut();
    let queued = connection.queued != write_seq && connection.measured != snd_nxt;
    let window_changed = connection.peer_window != snd_wnd;
    connection.asked = now;
    connection.queued = write_seq;
    connection.peer_window = snd_wnd;
    if !queued && !window_changed {
        return;
    }
    if sk.packets_out() != 0 || !sk.has_unsent_data() || !sk.slow_start_after_idle() {
        return;
    }
    sk.data_mut().measured = snd_nxt;

    let idle = now.wrapping_sub(sk.lsndtime());
    if idle::is_idle(idle, sk.rto()) {
        let fraction = Fraction::from_raw(sk.data().fraction);
        let rested = fraction.idle(idle, sk.rto());
        if rested != fraction {
            sk.data_mut().fraction = rested.to_raw();
            pace(sk);
        }
        let after = windows(sk).after_idle(idle, sk.rto(), sk.init_cwnd());
        sk.set_snd_ssthresh(after.ssthresh);
        sk.set_snd_cwnd(after.cwnd);
        sk.set_snd_cwnd_stamp(now);
        sk.reset_snd_cwnd_used();
    }
}

/// The window decays while the application does not fill it (`tcp_cwnd_application_limited()`).
/// Core TCP judges at the end of each transmission of new data; we, at the first callback after it,
/// with the time of that transmission. `lsndtime` is not that time: retransmissions change it too.
fn judge_underuse<A>(sk: &mut Sock<'_, A, Control>)
where
    A: CongestionControl<Data = Connection>,
{
    let Connection {
        judged,
        asked: sent,
        ..
    } = *sk.data();
    if judged == sk.snd_nxt() {
        return;
    }
    sk.data_mut().judged = sk.snd_nxt();

    let unused = sent.wrapping_sub(sk.snd_cwnd_stamp()) as i32;
    if unused < sk.rto() as i32 || sk.is_cwnd_limited() || !sk.slow_start_after_idle() {
        return;
    }
    if sk.ca_state() == CaState::Open && !sk.is_sndbuf_limited() {
        if let Some(after) = windows(sk).after_underuse(sk.snd_cwnd_used(), sk.init_cwnd()) {
            sk.set_snd_ssthresh(after.ssthresh);
            sk.set_snd_cwnd(after.cwnd);
        }
        sk.reset_snd_cwnd_used();
    }
    sk.set_snd_cwnd_stamp(sent);
}

/// Window and threshold as they are.
fn windows<A, C>(sk: &Sock<'_, A, C>) -> idle::Windows
where
    A: CongestionControl<Data = Connection>,
{
    idle::Windows {
        cwnd: sk.snd_cwnd(),
        ssthresh: sk.snd_ssthresh(),
        reducing: sk.ca_state().is_reducing(),
    }
}

/// Raises the window to the floor.
fn hold_floor<A, C>(sk: &mut Sock<'_, A, C>)
where
    A: CongestionControl<Data = Connection>,
    C: Window,
{
    if sk.snd_cwnd() < MIN_CWND {
        hold_floor_in(sk, sk.ca_state());
    }
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
    }
}

/// Sets the pacing rate that follows from the window (`tcp_update_pacing_rate()`), or from what is
/// wanted below the floor.
fn pace<A, C>(sk: &mut Sock<'_, A, C>)
where
    A: CongestionControl<Data = Connection>,
    C: Window,
{
    let connection = sk.data();
    if connection.fraction != 0 && PACE_BELOW_FLOOR.get() {
        return pace_below_floor(sk);
    }
    if connection.fraction != 0 || connection.paced_rtt_us != 0 {
        leave_pacing(sk);
    }

    let pace = Pace {
        mss: sk.mss_cache(),
        cwnd: sk.snd_cwnd(),
        ssthresh: sk.snd_ssthresh(),
        packets_out: sk.packets_out(),
        srtt_us_8: sk.srtt_us_8(),
        max_rate: sk.max_pacing_rate(),
    };
    sk.set_pacing_rate(pace.rate(sk.pacing_ratio(pace.in_slow_start())));
}

/// The rate follows the fraction of a window, and packets keep to it: sch_fq spaces them where it
/// is installed, else TCP's own timer.
fn pace_below_floor<A, C>(sk: &mut Sock<'_, A, C>)
where
    A: CongestionControl<Data = Connection>,
    C: Window,
{
    let srtt_us = sk.srtt_us_8() >> 3;
    let sample = match sk.rack_rtt_us() {
        0 => srtt_us,
        rtt_us => rtt_us.min(srtt_us),
    };
    let rtt_us = follow_rtt(sk.data().paced_rtt_us, sample).max(1);
    let fraction = Fraction::from_raw(sk.data().fraction);
    if let Some(rate) = fraction.rate(sk.mss_cache(), rtt_us) {
        sk.set_pacing_rate(rate.min(sk.max_pacing_rate()));
    }

    // Asked for each time: sch_fq may have come and gone, and then nobody would pace.
    let asked = sk.ask_for_pacing();
    let connection = sk.data_mut();
    connection.paced_rtt_us = rtt_us;
    connection.asked_for_pacing |= asked;
}

/// From here on packets leave as the window allows, as under stock: the rate is what sch_fq and TSO
/// autosizing expect, and TCP's own timer would hold a bulk flow to it.
fn leave_pacing<A, C>(sk: &mut Sock<'_, A, C>)
where
    A: CongestionControl<Data = Connection>,
    C: Window,
{
    let asked = sk.data().asked_for_pacing;
    let connection = sk.data_mut();
    connection.fraction = 0;
    connection.paced_rtt_us = 0;
    connection.asked_for_pacing = false;
    if asked {
        sk.end_pacing();
    }
}

/// The module: registered while loaded.
struct FloorModule {
    _registration: Registration<DctcpFloor>,
}

impl kernel::Module for FloorModule {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let registration = Registration::new(Pin::static_ref(&DCTCP)).inspect_err(|e| {
            pr_err!("dctcp_floor cannot be registered: {e:?}; is it loaded already?\n")
        })?;

        pr_info!(
            "dctcp_floor can be chosen (net.ipv4.tcp_congestion_control); nothing uses it yet\n"
        );
        pr_info!("meant for paths whose switches mark ECN at a step; not for the Internet\n");
        Ok(Self {
            _registration: registration,
        })
    }
}
