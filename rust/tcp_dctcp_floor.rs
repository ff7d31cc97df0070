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

use connection::{
    begin,
    begin_ack,
    control_window,
    follow_state,
    hold_undone,
    note_lossy_rtt,
    observed,
    pace,
    prepare_window,
    seen::{
        self,
        Counter,
        Seen, //
    },
    Connection, //
};
use dctcp::{
    alpha,
    ce,
    fraction::Fraction, //
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
    netns,
    param::{
        param,
        Bool,
        Uint, //
    },
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
        Sock, //
    }, //
};

mod connection;
mod dctcp;

/// The abstractions that this module stands on.
mod net {
    pub(crate) mod bindings;
    pub(crate) mod cong;
    mod ipv4;
    mod layout;
    pub(crate) mod netns;
    pub(crate) mod param;
    pub(crate) mod percpu;
    pub(crate) mod plb;
    // Of this and of sysctls the hook uses more.
    #[allow(dead_code)]
    mod setting;
    pub(crate) mod sock;
    mod sock_state;
    #[allow(dead_code)]
    pub(crate) mod sysctl;
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
    "space packets out after losses at the floor"
);

static DCTCP: Ops<DctcpFloor> = Ops::new();
static RENO: Ops<RenoFloor> = Ops::new();

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
            seen::count(sk, Counter::Fallbacks);
        }
        begin(sk);
    }

    #[inline(always)]
    fn in_ack_event(sk: &mut Sock<'_, Self, Control>) {
        begin_ack(sk);
        if !before(sk.snd_una(), sk.data().next_seq) {
            end_observation_window(sk);
        }
    }

    #[inline(always)]
    fn cong_control(sk: &mut Sock<'_, Self, Control>, ack: Ack) {
        control_window(sk, ack);
    }

    fn set_state(sk: &mut Sock<'_, Self, Control>, new: CaState) {
        if new == CaState::Recovery && sk.ca_state() != CaState::Recovery {
            let reduced = sk.ca_state() == CaState::Cwr;
            react_to_loss(sk, reduced, Fraction::lost);
            note_lossy_rtt(sk, false);
        }
        follow_state(sk, new);
        let connection = sk.data();
        if new == CaState::Loss && (connection.fraction != 0 || connection.paced_rtt_us != 0) {
            note_lossy_rtt(sk, true);
            // The first retransmission leaves before the next ACK.
            pace(sk);
        }
    }

    #[inline(always)]
    fn cwnd_event(sk: &mut Sock<'_, Self, Receive>, event: CaEvent) {
        match event {
            CaEvent::EcnIsCe => segment_arrived(sk, true),
            CaEvent::EcnNoCe => segment_arrived(sk, false),
            CaEvent::Loss => timer_fired(sk.reborrow()),
        }
    }

    #[inline(always)]
    fn tx_start(sk: &mut Sock<'_, Self, Control>) {
        // Nothing is in flight, so nothing is reordered by a change of path.
        sk.plb_check_rehash(|c| &mut c.plb);
    }

    #[inline(always)]
    fn before_transmit(sk: &mut Sock<'_, Self, Control>) -> u32 {
        prepare_window(sk);
        sk.min_tso_segs().into()
    }

    fn ssthresh(sk: &mut Sock<'_, Self, Query>) -> u32 {
        let cwnd = sk.snd_cwnd();
        let connection = sk.data_mut();
        connection.loss_cwnd = cwnd;
        connection.loss_fraction = connection.fraction;
        alpha::ssthresh_marked(cwnd, connection.alpha)
    }

    fn undo_cwnd(sk: &mut Sock<'_, Self, Query>) -> u32 {
        let connection = sk.data_mut();
        connection.fraction = connection.loss_fraction;
        hold_undone(sk, sk.snd_cwnd().max(sk.data().loss_cwnd))
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
        seen::count(sk, Counter::Fallbacks);
        begin(sk);
    }

    #[inline(always)]
    fn in_ack_event(sk: &mut Sock<'_, Self, Control>) {
        begin_ack(sk);
    }

    #[inline(always)]
    fn cong_control(sk: &mut Sock<'_, Self, Control>, ack: Ack) {
        control_window(sk, ack);
    }

    fn set_state(sk: &mut Sock<'_, Self, Control>, new: CaState) {
        follow_state(sk, new);
    }

    #[inline(always)]
    fn before_transmit(sk: &mut Sock<'_, Self, Control>) -> u32 {
        prepare_window(sk);
        sk.min_tso_segs().into()
    }

    fn ssthresh(sk: &mut Sock<'_, Self, Query>) -> u32 {
        sk.reno_ssthresh()
    }

    fn undo_cwnd(sk: &mut Sock<'_, Self, Query>) -> u32 {
        let cwnd = sk.reno_undo_cwnd();
        hold_undone(sk, cwnd)
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

/// A window of data was acknowledged: alpha and PLB learn what fraction of it was marked.
#[inline(always)]
fn end_observation_window(sk: &mut Sock<'_, DctcpFloor, Control>) {
    let window = observed(sk, sk.data());
    let alpha = window.next_alpha(sk.data().alpha, SHIFT_G.get());
    sk.data_mut().alpha = alpha;
    let next_seq = sk.snd_nxt();
    sk.data_mut().next_seq = next_seq;
    let delivered = sk.delivered();
    sk.data_mut().old_delivered = delivered;
    let delivered_ce = sk.delivered_ce();
    sk.data_mut().old_delivered_ce = delivered_ce;

    if sk.plb_enabled() != 0 {
        tell_plb(sk.reborrow(), window.delivered, window.delivered_ce);
    }
}

/// PLB learns what a round trip delivered, in packets; not of one that delivered nothing.
#[inline(never)]
fn tell_plb(mut sk: Sock<'_, DctcpFloor, Control>, delivered: u32, delivered_ce: u32) {
    let window = alpha::Window {
        delivered,
        delivered_ce,
    };
    if let Some(ce_ratio) = window.ce_ratio() {
        sk.plb_round(|c| &mut c.plb, ce_ratio);
    }
}

/// The receiver's side: marks go back as ECE, and every change at once.
#[inline(always)]
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

/// The retransmission timer fired.
#[inline(never)]
fn timer_fired(mut sk: Sock<'_, DctcpFloor, Receive>) {
    sk.plb_upon_rto(|c| &mut c.plb);
    let timed_out = if RTO_FLOOR.get() {
        Fraction::timed_out
    } else {
        // The loss window of one packet, clocked by ACKs.
        |_, _, _| Fraction::NONE
    };
    react_to_loss(&mut sk, false, timed_out);
}

/// Loss is answered by half the window, whatever alpha says (RFC 8257 §3.5).
///
/// `ssthresh` has come just before and kept the fraction for undo, but where the window was being
/// `reduced` already.
fn react_to_loss<C: Window>(
    sk: &mut Sock<'_, DctcpFloor, C>,
    reduced: bool,
    halve: fn(Fraction, u32, u32) -> Fraction,
) {
    let cwnd = sk.snd_cwnd();
    // Until a mark was seen, alpha is what a new connection begins with.
    let seen_marks = sk.delivered_ce() != 0;
    let connection = sk.data_mut();
    connection.loss_cwnd = cwnd;
    if reduced {
        connection.loss_fraction = connection.fraction;
    }
    if seen_marks && PACE_BELOW_FLOOR.get() {
        let fraction = Fraction::from_raw(connection.loss_fraction);
        connection.fraction = halve(fraction, cwnd, connection.alpha).to_raw();
    }
    sk.set_snd_ssthresh(alpha::ssthresh_lost(cwnd));
}

/// The module: registered while loaded.
struct FloorModule {
    // Dropped in this order: no socket counts when the namespaces lose their counters.
    _registration: Registration<DctcpFloor>,
    _namespaces: netns::Registration<Seen>,
}

impl kernel::Module for FloorModule {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let namespaces = netns::Registration::new()?;
        let registration = Registration::new(Pin::static_ref(&DCTCP)).inspect_err(|e| {
            pr_err!("dctcp_floor cannot be registered: {e:?}; is it loaded already?\n")
        })?;

        pr_info!(
            "dctcp_floor can be chosen (net.ipv4.tcp_congestion_control); nothing uses it yet\n"
        );
        pr_info!("meant for paths whose switches mark ECN at a step; not for the Internet\n");
        Ok(Self {
            _registration: registration,
            _namespaces: namespaces,
        })
    }
}
