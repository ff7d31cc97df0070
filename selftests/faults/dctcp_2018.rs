// SPDX-License-Identifier: GPL-2.0

//! `dctcp_2018`: DCTCP with the reduction rule of June 2018. Test-only; never installed.
//!
//! The historical control of the public report of June 2018 ("tcp: force cwnd at least 2 in
//! tcp_cwnd_reduction"): one decision differs from today's stock DCTCP, the step of PRR
//! (`prr_2018.rs`). So a CE mark on the last packet of a request can leave a window of one packet.
//! Everything else is what stock DCTCP of the running kernel does, as `rust/tcp_dctcp_floor.rs`
//! does it less the floor: a module with `cong_control` has to repeat the growth, the end of a
//! reduction, the decay while idle and the pacing rate. The decisions are the product's
//! (`rust/dctcp`), so its tests against stock hold for this one as well.
//!
//! Left out, since the lab does not need it: PLB, parameters, Reno's answers without ECN.

use core::pin::Pin;

use kernel::prelude::*;

use dctcp::{
    alpha,
    ce,
    idle,
    pacing::Pace,
    prr::Reduction, //
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
        Sock,
        INFINITE_SSTHRESH, //
    }, //
};

// Not everything that the product's modules use is used here.
#[allow(dead_code)]
#[path = "../../rust/dctcp/mod.rs"]
mod dctcp;
mod prr_2018;

/// The abstractions that this module stands on: the product's, and this folder's own.
#[allow(dead_code)]
mod net {
    mod ack_2018;
    #[path = "../../../rust/net/bindings.rs"]
    pub(crate) mod bindings;
    #[path = "../../../rust/net/cong.rs"]
    pub(crate) mod cong;
    #[path = "../../../rust/net/ipv4.rs"]
    mod ipv4;
    #[path = "../../../rust/net/layout.rs"]
    mod layout;
    #[path = "../../../rust/net/plb.rs"]
    pub(crate) mod plb;
    #[path = "../../../rust/net/sock.rs"]
    pub(crate) mod sock;
    #[path = "../../../rust/net/this_module.rs"]
    mod this_module;
}

module! {
    type: Module2018,
    name: "tcp_dctcp_2018",
    authors: ["The lowtail developers"],
    description: "Test-only: DCTCP with the reduction rule of June 2018",
    license: "GPL v2",
}

/// Weight of the last observation window in alpha, as 1/2^g (stock's default).
const SHIFT_G: u32 = 4;

static OPS: Ops<Dctcp2018> = Ops::new();

/// A connection's state.
#[derive(Clone, Copy, Zeroable)]
struct Connection {
    /// When SND.UNA reaches this, the observation window is over.
    next_seq: u32,
    /// `delivered` when the observation window began.
    old_delivered: u32,
    /// `delivered_ce` when the observation window began.
    old_delivered_ce: u32,
    /// The estimated fraction of marked packets, of 1024.
    alpha: u32,
    /// RCV.NXT before the last segment.
    prior_rcv_nxt: u32,
    /// The window before the last reduction, in packets, for undo.
    loss_cwnd: u32,
    /// `lsndtime` for which underuse of the window has been judged, in jiffies.
    judged: u32,
    /// The last segment that arrived was marked.
    ce_state: bool,
    /// An ACK is being processed, and `cong_control` will follow.
    in_ack: bool,
}

/// The algorithm.
struct Dctcp2018;

#[vtable]
impl CongestionControl for Dctcp2018 {
    type Data = Connection;

    const NAME: &'static CStr = c"dctcp_2018";
    const NEEDS_ECN: bool = true;

    fn init(sk: &mut Sock<'_, Self, Init>) {
        *sk.data_mut() = Connection {
            next_seq: sk.snd_nxt(),
            old_delivered: sk.delivered(),
            old_delivered_ce: sk.delivered_ce(),
            alpha: alpha::MAX_ALPHA,
            prior_rcv_nxt: sk.rcv_nxt(),
            judged: sk.lsndtime(),
            ..pin_init::zeroed()
        };
        if !sk.uses_ecn() && !sk.is_unconnected() {
            sk.clear_ect();
        }
        if sk.is_passive_open() {
            pace(sk);
        }
    }

    fn in_ack_event(sk: &mut Sock<'_, Self, Control>) {
        judge_underuse(sk);
        sk.data_mut().in_ack = sk.packets_out() != 0;
        if !before(sk.snd_una(), sk.data().next_seq) {
            end_observation_window(sk);
        }
    }

    fn cong_control(sk: &mut Sock<'_, Self, Control>, ack: Ack) {
        sk.data_mut().in_ack = false;
        if sk.ca_state().is_reducing() {
            reduce(
                sk,
                prr_2018::Ack {
                    delivered: ack.delivered,
                    retransmission_arrived: ack.retransmission_arrived(),
                },
            );
        } else if may_raise(sk, ack) {
            sk.reno_cong_avoid(ack.ack, ack.delivered);
            sk.set_snd_cwnd_stamp(jiffies32());
        }
        pace(sk);
    }

    fn set_state(sk: &mut Sock<'_, Self, Control>, new: CaState) {
        let old = sk.ca_state();
        if new == CaState::Recovery && old != CaState::Recovery {
            react_to_loss(sk);
        }
        end_reduction(sk, old, new);

        // As in `tcp_rack_reo_timeout()`, which retransmits without an ACK.
        if new == CaState::Recovery
            && old != CaState::Recovery
            && !sk.data().in_ack
            && sk.reordering_timer_fired()
        {
            reduce(
                sk,
                prr_2018::Ack {
                    delivered: 1,
                    retransmission_arrived: false,
                },
            );
        }
    }

    fn cwnd_event(sk: &mut Sock<'_, Self, Receive>, event: CaEvent) {
        match event {
            CaEvent::EcnIsCe => segment_arrived(sk, true),
            CaEvent::EcnNoCe => segment_arrived(sk, false),
            CaEvent::Loss => react_to_loss(sk),
        }
    }

    fn before_transmit(sk: &mut Sock<'_, Self, Control>) -> u32 {
        judge_underuse(sk);
        if sk.packets_out() == 0 && sk.has_unsent_data() {
            restart_after_idle(sk);
        }
        sk.min_tso_segs().into()
    }

    fn ssthresh(sk: &mut Sock<'_, Self, Query>) -> u32 {
        let cwnd = sk.snd_cwnd();
        let connection = sk.data_mut();
        connection.loss_cwnd = cwnd;
        alpha::ssthresh_marked(cwnd, connection.alpha)
    }

    fn undo_cwnd(sk: &mut Sock<'_, Self, Query>) -> u32 {
        sk.snd_cwnd().max(sk.data().loss_cwnd)
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

/// What the observation window has delivered so far.
fn observed<C>(sk: &Sock<'_, Dctcp2018, C>, connection: &Connection) -> alpha::Window {
    alpha::Window {
        delivered: sk.delivered().wrapping_sub(connection.old_delivered),
        delivered_ce: sk.delivered_ce().wrapping_sub(connection.old_delivered_ce),
    }
}

/// A window of data was acknowledged: alpha learns what fraction of it was marked.
fn end_observation_window(sk: &mut Sock<'_, Dctcp2018, Control>) {
    let connection = *sk.data();
    *sk.data_mut() = Connection {
        alpha: observed(sk, &connection).next_alpha(connection.alpha, SHIFT_G),
        next_seq: sk.snd_nxt(),
        old_delivered: sk.delivered(),
        old_delivered_ce: sk.delivered_ce(),
        ..connection
    };
}

/// The receiver's side: marks go back as ECE, and every change at once.
fn segment_arrived(sk: &mut Sock<'_, Dctcp2018, Receive>, marked: bool) {
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

/// Loss is answered by half the window.
fn react_to_loss<C: Window>(sk: &mut Sock<'_, Dctcp2018, C>) {
    let cwnd = sk.snd_cwnd();
    sk.data_mut().loss_cwnd = cwnd;
    sk.set_snd_ssthresh(alpha::ssthresh_lost(cwnd));
}

/// Whether an ACK may raise the window (`tcp_may_raise_cwnd()`).
fn may_raise(sk: &Sock<'_, Dctcp2018, Control>, ack: Ack) -> bool {
    if sk.reordering() > sk.sysctl_reordering() {
        ack.progressed()
    } else {
        ack.acknowledged_data()
    }
}

/// One step of 2018's PRR.
fn reduce(sk: &mut Sock<'_, Dctcp2018, Control>, ack: prr_2018::Ack) {
    let reduction = Reduction {
        ssthresh: sk.snd_ssthresh(),
        prior_cwnd: sk.prior_cwnd(),
        delivered: sk.prr_delivered(),
        out: sk.prr_out(),
        in_flight: sk.packets_in_flight(),
    };
    if let Some(step) = prr_2018::step(reduction, ack) {
        sk.set_prr_delivered(step.delivered);
        sk.set_snd_cwnd(step.cwnd);
    }
}

/// The end of CWR, or of a Recovery that was not undone (`tcp_end_cwnd_reduction()`).
fn end_reduction(sk: &mut Sock<'_, Dctcp2018, Control>, old: CaState, new: CaState) {
    let ends = match (old, new) {
        (CaState::Cwr, CaState::Open | CaState::Disorder) => true,
        (CaState::Recovery, CaState::Open | CaState::Disorder) => sk.undo_marker() != 0,
        _ => false,
    };
    if ends && sk.snd_ssthresh() < INFINITE_SSTHRESH {
        sk.set_snd_cwnd(sk.snd_ssthresh());
        sk.set_snd_cwnd_stamp(jiffies32());
    }
}

/// Window and threshold as they are.
fn windows(sk: &Sock<'_, Dctcp2018, Control>) -> idle::Windows {
    idle::Windows {
        cwnd: sk.snd_cwnd(),
        ssthresh: sk.snd_ssthresh(),
        reducing: sk.ca_state().is_reducing(),
    }
}

/// The window decays while nothing is sent (`tcp_slow_start_after_idle_check()`).
fn restart_after_idle(sk: &mut Sock<'_, Dctcp2018, Control>) {
    let now = jiffies32();
    let idle = now.wrapping_sub(sk.lsndtime());
    if sk.slow_start_after_idle() == 0 {
        return;
    }
    if idle::is_idle(idle, sk.rto()) {
        let after = windows(sk).after_idle(idle, sk.rto(), sk.init_cwnd());
        sk.set_snd_ssthresh(after.ssthresh);
        sk.set_snd_cwnd(after.cwnd);
        sk.set_snd_cwnd_stamp(now);
        sk.reset_snd_cwnd_used();
    }
}

/// The window decays while the application does not fill it (`tcp_cwnd_application_limited()`).
fn judge_underuse(sk: &mut Sock<'_, Dctcp2018, Control>) {
    let sent = sk.lsndtime();
    if sk.data().judged == sent {
        return;
    }
    sk.data_mut().judged = sent;

    let unused = sent.wrapping_sub(sk.snd_cwnd_stamp()) as i32;
    if unused < sk.rto() as i32 || sk.is_cwnd_limited() || sk.slow_start_after_idle() == 0 {
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

/// Sets the pacing rate that follows from the window (`tcp_update_pacing_rate()`).
fn pace<C: Window>(sk: &mut Sock<'_, Dctcp2018, C>) {
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

/// The module: registered while loaded.
struct Module2018 {
    _registration: Registration<Dctcp2018>,
}

impl kernel::Module for Module2018 {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let registration = Registration::new(Pin::static_ref(&OPS))?;

        pr_info!("a test-only module: dctcp_2018 can be chosen\n");
        Ok(Self {
            _registration: registration,
        })
    }
}
