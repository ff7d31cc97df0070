// SPDX-License-Identifier: GPL-2.0

//! When autocorking may hold a small write, as functions of plain numbers.
//!
//! Nothing here knows a kernel type, allocates, locks or can panic, so that the same file is
//! compiled into `autocork_policy.ko` and into the host's tests (`selftests/host`).
//!
//! The bits are those of `tp->nonagle` (`include/net/tcp.h`). They have to be read one by one:
//! `setsockopt(TCP_NODELAY)` leaves OFF|PUSH for a moment, CORK and NODELAY can be set together,
//! and pushes in the middle of a `sendmsg()` pass PUSH as `tcp_push()`'s argument whatever the
//! socket says. The patch of 2023-12 tested the argument for zero, caught CORK with it, and was
//! reverted the same day.

/// Nagle's algorithm is off: the application set TCP_NODELAY (`TCP_NAGLE_OFF`).
pub(crate) const NAGLE_OFF: u8 = 1;
/// The socket is corked: the application set TCP_CORK (`TCP_NAGLE_CORK`).
pub(crate) const NAGLE_CORK: u8 = 2;

/// A policy, one per network namespace (`net.ipv4.tcp_autocork_policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Leave every push alone.
    Stock,
    /// Never autocork a socket that has TCP_NODELAY and neither TCP_CORK nor MSG_MORE.
    NoDelay,
    /// The literal rule of the patch of 2023-12, for comparison: never autocork when
    /// `tcp_push()`'s argument `nonagle` is not 0, CORK and all.
    NonAgle,
}

impl Policy {
    /// Every policy, in the order in which they are listed to the operator.
    pub(crate) const ALL: [Policy; 3] = [Policy::Stock, Policy::NoDelay, Policy::NonAgle];

    /// What holds until somebody chooses.
    pub(crate) const DEFAULT: Policy = Policy::NoDelay;

    /// The name by which it is chosen.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Policy::Stock => "stock",
            Policy::NoDelay => "nodelay",
            Policy::NonAgle => "nonagle",
        }
    }

    /// The policy called `name`, if there is one.
    pub(crate) fn from_name(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name().as_bytes() == name)
    }

    /// The policy with this number, the inverse of `policy as u32`; unknown numbers are
    /// [`Policy::Stock`], which changes nothing.
    pub(crate) fn from_index(index: u32) -> Self {
        match index {
            1 => Policy::NoDelay,
            2 => Policy::NonAgle,
            _ => Policy::Stock,
        }
    }

    /// What to do about one call of `tcp_push()`.
    pub(crate) fn decide(self, push: Push) -> Verdict {
        match self {
            Policy::Stock => Verdict::LeftStock,
            Policy::NonAgle if push.argument != 0 => Verdict::Covered,
            Policy::NonAgle => Verdict::LeftNagle,
            Policy::NoDelay if push.more => Verdict::LeftMore,
            Policy::NoDelay if push.nonagle & NAGLE_CORK != 0 => Verdict::LeftCork,
            Policy::NoDelay if push.nonagle & NAGLE_OFF == 0 => Verdict::LeftNagle,
            Policy::NoDelay => Verdict::Covered,
        }
    }
}

/// What a call of `tcp_push()` brings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Push {
    /// The socket's own bits, `tp->nonagle`.
    pub(crate) nonagle: u8,
    /// The argument `nonagle`: the socket's bits, or NAGLE_PUSH in the middle of a `sendmsg()`.
    pub(crate) argument: i32,
    /// The call carries MSG_MORE.
    pub(crate) more: bool,
}

/// What was decided about a push, and why. The discriminants number the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Autocorking is off for this push.
    Covered = 0,
    /// Left alone: the namespace's policy is `stock`.
    LeftStock = 1,
    /// Left alone: the application did not turn Nagle off, or turned it on again.
    LeftNagle = 2,
    /// Left alone: the application corked the socket.
    LeftCork = 3,
    /// Left alone: the application said MSG_MORE.
    LeftMore = 4,
}

impl Verdict {
    /// Every verdict, by its number.
    pub(crate) const ALL: [Verdict; 5] = [
        Verdict::Covered,
        Verdict::LeftStock,
        Verdict::LeftNagle,
        Verdict::LeftCork,
        Verdict::LeftMore,
    ];

    /// The name of its counter in `/proc/net/tcp_autocork_policy`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Verdict::Covered => "covered",
            Verdict::LeftStock => "left_stock",
            Verdict::LeftNagle => "left_nagle",
            Verdict::LeftCork => "left_cork",
            Verdict::LeftMore => "left_more",
        }
    }
}
