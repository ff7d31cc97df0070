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
    /// Autocork the sockets that `nodelay` covers, but never longer than a deadline.
    Bounded,
}

impl Policy {
    /// Every policy, in the order in which they are listed to the operator.
    pub(crate) const ALL: [Policy; 4] = [
        Policy::Stock,
        Policy::NoDelay,
        Policy::NonAgle,
        Policy::Bounded,
    ];

    /// What holds until somebody chooses.
    pub(crate) const DEFAULT: Policy = Policy::NoDelay;

    /// The name by which it is chosen.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Policy::Stock => "stock",
            Policy::NoDelay => "nodelay",
            Policy::NonAgle => "nonagle",
            Policy::Bounded => "bounded",
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
            3 => Policy::Bounded,
            _ => Policy::Stock,
        }
    }

    /// What to do about one call of `tcp_push()`.
    pub(crate) fn decide(self, push: Push) -> Verdict {
        match self {
            Policy::Stock => Verdict::LeftStock,
            Policy::NonAgle if push.argument != 0 => Verdict::Covered,
            Policy::NonAgle => Verdict::LeftNagle,
            Policy::NoDelay | Policy::Bounded => match push.reason_to_wait() {
                Some(reason) => reason,
                None if self == Policy::Bounded => Verdict::Bounded,
                None => Verdict::Covered,
            },
        }
    }
}

/// Whose spliced data is sent as if TCP_NODELAY were set (`net.ipv4.tcp_splice_nodelay`). A
/// forwarder may not apply Nagle's algorithm to data that is not its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Splice {
    /// Nobody's.
    Off,
    /// Sockets whose route is a loopback route.
    Loopback,
    /// Every socket.
    Everywhere,
}

impl Splice {
    /// What holds until somebody chooses.
    pub(crate) const DEFAULT: Splice = Splice::Loopback;

    /// The greatest number of a setting.
    pub(crate) const MAX: u32 = Splice::Everywhere as u32;

    /// The setting with this number; unknown numbers are [`Splice::Off`], which changes nothing.
    pub(crate) fn from_index(index: u32) -> Self {
        match index {
            1 => Splice::Loopback,
            2 => Splice::Everywhere,
            _ => Splice::Off,
        }
    }

    /// Whether data that came to a socket as spliced pages is covered. `loopback` tells of the
    /// socket's route; `ktls` whether the pages are records that kTLS made of what was written or
    /// spliced. Who makes records is an end, no forwarder, and means what it says about Nagle.
    pub(crate) fn covers(
        self,
        ktls: impl FnOnce() -> bool,
        loopback: impl FnOnce() -> bool,
    ) -> bool {
        match self {
            Splice::Off => false,
            Splice::Loopback => loopback() && !ktls(),
            Splice::Everywhere => !ktls(),
        }
    }
}

/// What a call of `tcp_push()` brings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Push {
    /// The socket's own bits, `tp->nonagle`.
    pub(crate) nonagle: u8,
    /// The argument `nonagle`: the socket's bits, or PUSH in the middle of a `sendmsg()`.
    pub(crate) argument: i32,
    /// The call carries MSG_MORE.
    pub(crate) more: bool,
    /// The data was spliced, and [`Splice::covers`] this socket.
    pub(crate) spliced: bool,
}

impl Push {
    /// Why this push may wait for more data: the application asked for it, or did not object.
    fn reason_to_wait(self) -> Option<Verdict> {
        if self.more {
            Some(Verdict::LeftMore)
        } else if self.nonagle & NAGLE_CORK != 0 {
            Some(Verdict::LeftCork)
        } else if self.nonagle & NAGLE_OFF == 0 && !self.spliced {
            Some(Verdict::LeftNagle)
        } else {
            None
        }
    }

    /// Nagle's algorithm is to be off for this push although the socket has it on: the data was
    /// spliced, and neither corked nor announced to continue.
    pub(crate) fn turns_nagle_off(self) -> bool {
        self.spliced && self.nonagle & NAGLE_OFF == 0 && self.reason_to_wait().is_none()
    }
}

/// What was decided about a push, and why. The discriminants number the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Autocorking is off for this push.
    Covered = 0,
    /// Autocorking is on for this push, until a deadline.
    Bounded = 1,
    /// Left alone: the namespace's policy is `stock`.
    LeftStock = 2,
    /// Left alone: the application did not turn Nagle off, or turned it on again.
    LeftNagle = 3,
    /// Left alone: the application corked the socket.
    LeftCork = 4,
    /// Left alone: the application said MSG_MORE.
    LeftMore = 5,
}

/// What is counted in a namespace, by number: the [`Verdict`]s come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    /// Pushes by verdict.
    Verdict(Verdict),
    /// Holds that were about to begin under `bounded`, as TCPAutoCorking counts them.
    Held,
    /// Deadlines set for them: one serves every hold until it expires.
    Deadlines,
    /// Deadlines that found the data still held, and sent it.
    FlushedByDeadline,
    /// Deadlines that came after the data had left by a TX completion or an ACK.
    FlushedInTime,
    /// Pushes of spliced data that Nagle's algorithm was turned off for.
    Spliced,
}

impl Counter {
    /// Every counter, in the order in which they are listed to the operator.
    pub(crate) const ALL: [Counter; 11] = [
        Counter::Verdict(Verdict::Covered),
        Counter::Verdict(Verdict::Bounded),
        Counter::Verdict(Verdict::LeftStock),
        Counter::Verdict(Verdict::LeftNagle),
        Counter::Verdict(Verdict::LeftCork),
        Counter::Verdict(Verdict::LeftMore),
        Counter::Held,
        Counter::Deadlines,
        Counter::FlushedByDeadline,
        Counter::FlushedInTime,
        Counter::Spliced,
    ];

    /// Its number.
    pub(crate) const fn index(self) -> usize {
        match self {
            Counter::Verdict(verdict) => verdict as usize,
            Counter::Held => 6,
            Counter::Deadlines => 7,
            Counter::FlushedByDeadline => 8,
            Counter::FlushedInTime => 9,
            Counter::Spliced => 10,
        }
    }

    /// Its name in `/proc/net/tcp_autocork_policy`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Counter::Verdict(Verdict::Covered) => "covered",
            Counter::Verdict(Verdict::Bounded) => "bounded",
            Counter::Verdict(Verdict::LeftStock) => "left_stock",
            Counter::Verdict(Verdict::LeftNagle) => "left_nagle",
            Counter::Verdict(Verdict::LeftCork) => "left_cork",
            Counter::Verdict(Verdict::LeftMore) => "left_more",
            Counter::Held => "held",
            Counter::Deadlines => "deadlines",
            Counter::FlushedByDeadline => "flushed_by_deadline",
            Counter::FlushedInTime => "flushed_in_time",
            Counter::Spliced => "spliced",
        }
    }
}
