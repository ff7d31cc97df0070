// SPDX-License-Identifier: GPL-2.0

//! The window while nothing is sent, and while the application does not fill it: when
//! [`dctcp::idle`](super::super::dctcp::idle) is asked, and with what.

use super::{
    super::{
        dctcp::idle,
        net::{
            cong::{
                CaState,
                CongestionControl, //
            },
            sock::{
                context::Control,
                jiffies32,
                Sock, //
            }, //
        },
    },
    Connection, //
};

/// The window decays while nothing is sent (`tcp_slow_start_after_idle_check()`). Core TCP measures
/// the idle time when data is queued, and when the peer's window changes while data waits; we, when
/// it is about to send next, which it is right after that. Data that waits longer, for a cork or for
/// pacing, is not measured again.
#[inline(always)]
pub(super) fn restart_after_idle<A>(sk: &mut Sock<'_, A, Control>)
where
    A: CongestionControl<Data = Connection>,
{
    let (now, write_seq, snd_wnd, snd_nxt) =
        (jiffies32(), sk.write_seq(), sk.snd_wnd(), sk.snd_nxt());
    let idle = sk.packets_out() == 0;
    let connection = sk.data_mut();
    let queued = idle && connection.queued != write_seq && connection.measured != snd_nxt;
    let window_changed = idle && connection.peer_window != snd_wnd;
    connection.asked = now;
    connection.queued = write_seq;
    connection.peer_window = snd_wnd;
    if !queued && !window_changed {
        return;
    }
    if write_seq == snd_nxt || sk.slow_start_after_idle() == 0 {
        return;
    }
    sk.data_mut().measured = snd_nxt;

    let idle = now.wrapping_sub(sk.lsndtime());
    if idle::is_idle(idle, sk.rto()) {
        restart(sk.reborrow(), idle, now);
    }
}

/// The window after `idle` jiffies.
#[inline(never)]
fn restart<A>(mut sk: Sock<'_, A, Control>, idle: u32, now: u32)
where
    A: CongestionControl<Data = Connection>,
{
    let after = windows(&sk).after_idle(idle, sk.rto(), sk.init_cwnd());
    sk.set_snd_ssthresh(after.ssthresh);
    sk.set_snd_cwnd(after.cwnd);
    sk.set_snd_cwnd_stamp(now);
    sk.reset_snd_cwnd_used();
}

/// The window decays while the application does not fill it (`tcp_cwnd_application_limited()`).
/// Core TCP judges at the end of each transmission of new data; we, at the first callback after it,
/// with the time of that transmission. `lsndtime` is not that time: retransmissions change it too.
#[inline(always)]
pub(in super::super) fn judge_underuse<A>(sk: &mut Sock<'_, A, Control>)
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
    if unused >= sk.rto() as i32 {
        judge_unused(sk.reborrow(), sent);
    }
}

/// The window was last full an RTO or longer before `sent`.
#[inline(never)]
fn judge_unused<A>(mut sk: Sock<'_, A, Control>, sent: u32)
where
    A: CongestionControl<Data = Connection>,
{
    if sk.is_cwnd_limited() || sk.slow_start_after_idle() == 0 {
        return;
    }
    if sk.ca_state() == CaState::Open && !sk.is_sndbuf_limited() {
        if let Some(after) = windows(&sk).after_underuse(sk.snd_cwnd_used(), sk.init_cwnd()) {
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
