// SPDX-License-Identifier: GPL-2.0

//! The pacing rate, and pacing below the floor: when
//! [`dctcp::fraction`](super::super::dctcp::fraction) is asked, and what core TCP is told of it.

use super::{
    super::{
        dctcp::{
            fraction::{
                begins_with,
                follow_rtt,
                Fraction, //
            },
            pacing::Pace, //
        },
        net::{
            cong::CongestionControl,
            sock::{
                context::{
                    Control,
                    Window, //
                },
                random32,
                Sock, //
            }, //
        },
        PACE_BELOW_FLOOR, //
    },
    seen::{
        self,
        Counter, //
    },
    Connection, //
};

/// What is wanted below the floor goes up, and cwnd stays at the floor until 2 are wanted. Whether
/// the application used the window is not asked: whoever sends one packet an RTT used it.
#[inline(never)]
pub(super) fn raise_fraction<A>(mut sk: Sock<'_, A, Control>, delivered: u32)
where
    A: CongestionControl<Data = Connection>,
{
    let connection = sk.data_mut();
    let fraction = Fraction::from_raw(connection.fraction);
    connection.fraction = fraction.acked(delivered, connection.alpha).to_raw();
}

/// A flow begins again: with what marks had left it; and one that wants less than a packet an RTT, at a
/// random moment of the time that it would take for one in the queue that lost packets, once for each
/// time that nothing was in flight.
#[inline(always)]
pub(super) fn spread_starts<A>(sk: &mut Sock<'_, A, Control>)
where
    A: CongestionControl<Data = Connection>,
{
    if sk.packets_out() == 0 && PACE_BELOW_FLOOR.get() && sk.has_unsent_data() {
        begin_again(sk.reborrow());
    }
}

#[inline(never)]
fn begin_again<A>(mut sk: Sock<'_, A, Control>)
where
    A: CongestionControl<Data = Connection>,
{
    // Until a mark was seen, alpha is what a new connection begins with.
    if sk.delivered_ce() != 0 {
        let cwnd = begins_with(sk.snd_cwnd(), sk.snd_ssthresh(), sk.data().alpha);
        sk.set_snd_cwnd(cwnd);
    }
    if sk.data().paced_rtt_us != 0 {
        spread_start(sk);
    }
}

fn spread_start<A>(mut sk: Sock<'_, A, Control>)
where
    A: CongestionControl<Data = Connection>,
{
    let Connection {
        paced_rtt_us,
        lossy_rtt_us,
        spread_at,
        ..
    } = *sk.data();
    if spread_at == sk.snd_nxt() {
        return;
    }
    let fraction = Fraction::from_raw(sk.data().fraction);
    if let Some(usecs) = fraction.spread(paced_rtt_us.max(lossy_rtt_us), random32()) {
        sk.data_mut().spread_at = sk.snd_nxt();
        sk.hold_back(usecs);
        seen::count(&sk, Counter::HeldBack);
    }
}

/// Sets the pacing rate that follows from the window (`tcp_update_pacing_rate()`), or from what is
/// wanted below the floor.
pub(in super::super) fn pace<A, C>(sk: &mut Sock<'_, A, C>)
where
    A: CongestionControl<Data = Connection>,
    C: Window,
{
    let connection = sk.data();
    if connection.fraction | connection.paced_rtt_us != 0 && follow_fraction(sk.reborrow()) {
        return;
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

/// What is wanted is, or was, below the floor. Returns whether it set the rate.
#[inline(never)]
fn follow_fraction<A, C>(mut sk: Sock<'_, A, C>) -> bool
where
    A: CongestionControl<Data = Connection>,
    C: Window,
{
    let paced = sk.data().fraction != 0 && PACE_BELOW_FLOOR.get();
    if paced {
        pace_below_floor(&mut sk);
    } else {
        leave_pacing(&mut sk);
    }
    paced
}

/// The newest RTT, in µs; beyond `lossy` not more than the smoothed one. 0 when there is none yet.
fn newest_rtt_us<A, C>(sk: &Sock<'_, A, C>, lossy: u32) -> u32
where
    A: CongestionControl<Data = Connection>,
    C: Window,
{
    let srtt_us = sk.srtt_us_8() >> 3;
    match sk.rack_rtt_us() {
        0 => srtt_us,
        rtt_us => rtt_us.min(srtt_us.max(lossy)),
    }
}

/// Below the floor a loss was seen: the RTT now is that of a queue that loses packets. The ACK that
/// shows a loss was not held back by the receiver; what came before an RTO may have been.
pub(in super::super) fn note_lossy_rtt<A, C>(sk: &mut Sock<'_, A, C>, timed_out: bool)
where
    A: CongestionControl<Data = Connection>,
    C: Window,
{
    let rtt_us = newest_rtt_us(sk, if timed_out { 0 } else { u32::MAX });
    let connection = sk.data_mut();
    if connection.fraction != 0 && !(timed_out && connection.lossy_rtt_us != 0) {
        connection.lossy_rtt_us = rtt_us;
    }
}

/// The rate follows the fraction of a window, and packets keep to it: sch_fq spaces them where it
/// is installed, else TCP's own timer.
fn pace_below_floor<A, C>(sk: &mut Sock<'_, A, C>)
where
    A: CongestionControl<Data = Connection>,
    C: Window,
{
    let Connection {
        paced_rtt_us,
        lossy_rtt_us,
        ..
    } = *sk.data();
    let rtt_us = follow_rtt(paced_rtt_us, newest_rtt_us(sk, lossy_rtt_us), lossy_rtt_us).max(1);
    let fraction = Fraction::from_raw(sk.data().fraction);
    if let Some(rate) = fraction.rate(sk.mss_cache(), rtt_us) {
        sk.set_pacing_rate(rate.min(sk.max_pacing_rate()));
    }

    seen::paced(sk, fraction.to_raw(), rtt_us);

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
    connection.lossy_rtt_us = 0;
    connection.asked_for_pacing = false;
    if asked {
        sk.end_pacing();
    }
}
