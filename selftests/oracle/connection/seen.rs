// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `rust/connection/seen.rs`: a process has one namespace, and nobody listens to
//! tracepoints. How often the floor was engaged is counted, for the oracle to compare.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{
    super::net::{
        cong::{CaState, CongestionControl},
        sock::{Sock, context::Owned},
    },
    Connection,
};

/// Windows below 2 packets that were raised.
pub(in super::super) static RAISED: AtomicU64 = AtomicU64::new(0);

/// What is counted elsewhere.
pub(in super::super) enum Counter {
    Connections,
    Fallbacks,
    HeldBack,
}

/// The counters of a namespace.
pub(in super::super) struct Seen;

pub(in super::super) fn count<A, C>(_sk: &Sock<'_, A, C>, _counter: Counter)
where
    A: CongestionControl<Data = Connection>,
    C: Owned,
{
}

pub(in super::super) fn raised<A, C>(sk: &Sock<'_, A, C>, state: CaState, prior: u32, cwnd: u32)
where
    A: CongestionControl<Data = Connection>,
    C: Owned,
{
    let _ = (sk, state);
    if prior < 2 && cwnd == 2 {
        RAISED.fetch_add(1, Relaxed);
    }
}

pub(super) fn paced<A, C>(_sk: &Sock<'_, A, C>, _window: u32, _rtt_us: u32)
where
    A: CongestionControl<Data = Connection>,
    C: Owned,
{
}
