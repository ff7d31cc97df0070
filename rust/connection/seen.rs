// SPDX-License-Identifier: GPL-2.0

//! What an operator sees of the floor: counters of each network namespace, in
//! `/proc/net/tcp_dctcp_floor`, and tracepoints.
//!
//! Nothing here is on the path of an ordinary ACK or packet: what is counted is what is rare.

use core::pin::Pin;

use kernel::{
    prelude::*,
    seq_file::SeqFile,
    seq_print, //
};

use super::{
    super::net::{
        cong::{
            CaState,
            CongestionControl, //
        },
        netns::{
            PerNamespace,
            Subsystem, //
        },
        percpu::Counters,
        sock::{
            context::Owned,
            Sock, //
        },
        sysctl::Sysctl, //
    },
    Connection, //
};

static SUBSYSTEM: Subsystem<Seen> = Subsystem::new();

/// What is counted.
#[derive(Clone, Copy)]
pub(in super::super) enum Counter {
    /// Connections that `dctcp_floor` began to control: established with it, or given to it.
    Connections,
    /// Those of them that go on as Reno with the floor, since there is no ECN.
    Fallbacks,
    /// Windows below 2 packets that were raised to 2, by the congestion state.
    FloorOpen,
    /// The same in Disorder.
    FloorDisorder,
    /// The same in CWR.
    FloorCwr,
    /// The same in Recovery.
    FloorRecovery,
    /// The same in Loss: after an RTO.
    FloorLoss,
    /// Times that a connection began to be paced below the floor.
    Paced,
    /// Times that the start of what a paced connection had to send was held back.
    HeldBack,
}

impl Counter {
    const ALL: [(Self, &'static str); 9] = [
        (Counter::Connections, "connections"),
        (Counter::Fallbacks, "fallbacks"),
        (Counter::FloorOpen, "floor_open"),
        (Counter::FloorDisorder, "floor_disorder"),
        (Counter::FloorCwr, "floor_cwr"),
        (Counter::FloorRecovery, "floor_recovery"),
        (Counter::FloorLoss, "floor_loss"),
        (Counter::Paced, "paced"),
        (Counter::HeldBack, "held_back"),
    ];

    fn floor_in(state: CaState) -> Self {
        match state {
            CaState::Open => Counter::FloorOpen,
            CaState::Disorder => Counter::FloorDisorder,
            CaState::Cwr => Counter::FloorCwr,
            CaState::Recovery => Counter::FloorRecovery,
            CaState::Loss => Counter::FloorLoss,
        }
    }
}

/// The counters of one network namespace.
pub(in super::super) struct Seen(Counters<{ Counter::ALL.len() }>);

impl PerNamespace for Seen {
    const SYSCTL_PATH: &'static CStr = c"net/ipv4";
    const PROC_NAME: &'static CStr = c"tcp_dctcp_floor";

    fn subsystem() -> Pin<&'static Subsystem<Self>> {
        Pin::static_ref(&SUBSYSTEM)
    }

    fn sysctls() -> &'static [Sysctl<Self>] {
        &[]
    }

    fn new() -> Result<Self> {
        Ok(Self(Counters::new()?))
    }

    fn show(&self, file: &SeqFile) {
        for (counter, name) in Counter::ALL {
            seq_print!(file, "{} {}\n", name, self.0.sum(counter as usize));
        }
    }
}

/// Counts one.
#[inline(never)]
pub(in super::super) fn count<A, C>(sk: &Sock<'_, A, C>, counter: Counter)
where
    A: CongestionControl<Data = Connection>,
    C: Owned,
{
    sk.with_state(|seen: &Seen| seen.0.inc(counter as usize));
}

/// In `state` a window of `prior` packets is raised to `cwnd`.
#[cold]
pub(in super::super) fn raised<A, C>(sk: &Sock<'_, A, C>, state: CaState, prior: u32, cwnd: u32)
where
    A: CongestionControl<Data = Connection>,
    C: Owned,
{
    count(sk, Counter::floor_in(state));
    sk.trace_raised(state, prior, cwnd, sk.data().alpha);
}

/// The pacing rate follows a window of `window` 1/65536 packets and an RTT of `rtt_us` µs.
pub(super) fn paced<A, C>(sk: &Sock<'_, A, C>, window: u32, rtt_us: u32)
where
    A: CongestionControl<Data = Connection>,
    C: Owned,
{
    if sk.data().paced_rtt_us == 0 {
        count(sk, Counter::Paced);
    }
    sk.trace_paced(window, rtt_us, sk.data().alpha);
}
