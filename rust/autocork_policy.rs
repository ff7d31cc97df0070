// SPDX-License-Identifier: GPL-2.0

//! `autocork_policy`: autocorking that respects TCP_NODELAY.
//!
//! `tcp_push()` may hold a small write until a packet of the same socket has left the device
//! ("autocorking"), and does not ask whether the application turned Nagle's algorithm off. When
//! the completion is late, the second write of a reply waits for it, or for a delayed ACK of
//! 40 ms. This module looks at each call of `tcp_push()` and, by the policy of the socket's network
//! namespace, takes autocorking out of it. TCP_CORK, MSG_MORE and sockets without TCP_NODELAY are
//! left as they are.
//!
//! What is changed are arguments of that call. `size_goal` is read there for the autocork test and
//! for nothing else: 0 means "do not autocork". Under `bounded` even that is left alone, and a
//! timer sees to it that a held write leaves by a deadline.
//!
//! ```text
//!  tcp_push(sk, flags, mss_now, nonagle, size_goal)
//!      │ hook
//!      ├─ nodelay: NODELAY, no CORK, no MSG_MORE ───► size_goal = 0
//!      ├─ bounded: the same, and about to be held ──► the socket's pacing timer is set
//!      └─ spliced data on a loopback route ─────────► nonagle = TCP_NAGLE_OFF
//! ```

use core::{
    fmt::Write,
    pin::Pin, //
};

use kernel::{
    prelude::*,
    seq_file::SeqFile,
    seq_print, //
};

use net::{
    hook::{
        self,
        Hook, //
    },
    netns::{
        self,
        PerNamespace,
        Subsystem, //
    },
    percpu::Counters,
    periodic::{
        Periodic,
        Task, //
    },
    push_probe::PushProbe,
    setting::Setting,
    sysctl::{
        number,
        Sysctl,
        Text, //
    },
    tcp_pace_kick::{
        Call as PaceKick,
        TcpPaceKick, //
    },
    tcp_push::{
        Call as PushCall,
        Change,
        Hold,
        TcpPush, //
    }, //
};
use policy::{
    Counter,
    Policy,
    Push,
    Splice,
    Verdict, //
};

mod policy;

/// The abstractions that this module stands on.
mod net {
    pub(crate) mod bindings;
    pub(crate) mod hook;
    mod layout;
    pub(crate) mod netns;
    pub(crate) mod percpu;
    pub(crate) mod periodic;
    pub(crate) mod push_probe;
    pub(crate) mod setting;
    pub(crate) mod sysctl;
    pub(crate) mod tcp_pace_kick;
    pub(crate) mod tcp_push;
}

module! {
    type: AutocorkModule,
    name: "autocork_policy",
    authors: ["The lowtail developers"],
    description: "TCP autocorking that respects TCP_NODELAY",
    license: "GPL v2",
}

static SUBSYSTEM: Subsystem<Autocork> = Subsystem::new();

/// Shortest, default and longest deadline, in µs. The default is as long as NIC drivers let the
/// completions of a bulk stream wait (4000 interrupts a second): a shorter one would send what such
/// a stream is still gathering.
const DEADLINE_US: (u32, u32, u32) = (10, 250, 40_000);

/// Autocorking in one network namespace.
struct Autocork {
    /// The [`Policy`], by its number.
    policy: Setting<u32>,
    /// The longest hold under `bounded`, in µs.
    deadline_us: Setting<u32>,
    /// The [`Splice`] setting, by its number.
    splice: Setting<u32>,
    /// What was done, by [`Counter`].
    counters: Counters<{ Counter::ALL.len() }>,
}

impl Autocork {
    fn policy(&self) -> Policy {
        Policy::from_index(self.policy.get())
    }

    fn splice(&self) -> Splice {
        Splice::from_index(self.splice.get())
    }

    fn count(&self, counter: Counter) {
        self.counters.inc(counter.index());
    }
}

/// Settings under `net.ipv4`; each takes effect at the next write to a socket.
static SYSCTLS: [Sysctl<Autocork>; 4] = [
    Sysctl {
        name: c"tcp_autocork_policy",
        read: |autocork, text| print(text, autocork.policy().name()),
        write: Some(|autocork, text| {
            let policy = Policy::from_name(text).ok_or(EINVAL)?;
            autocork.policy.set(policy as u32);
            Ok(())
        }),
    },
    Sysctl {
        name: c"tcp_available_autocork_policy",
        read: |_, text| {
            for (i, policy) in Policy::ALL.into_iter().enumerate() {
                print(text, if i == 0 { "" } else { " " });
                print(text, policy.name());
            }
        },
        write: None,
    },
    Sysctl {
        name: c"tcp_autocork_deadline_us",
        read: |autocork, text| print(text, autocork.deadline_us.get()),
        write: Some(|autocork, text| {
            let (shortest, _, longest) = DEADLINE_US;
            let deadline = number(text, shortest..=longest)?;
            autocork.deadline_us.set(deadline);
            Ok(())
        }),
    },
    Sysctl {
        name: c"tcp_splice_nodelay",
        read: |autocork, text| print(text, autocork.splice.get()),
        write: Some(|autocork, text| {
            let splice = number(text, 0..=Splice::MAX)?;
            autocork.splice.set(splice);
            Ok(())
        }),
    },
];

fn print(text: &mut Text, what: impl core::fmt::Display) {
    // What does not fit is cut off; nothing here is longer than the text.
    let _ = write!(text, "{what}");
}

impl PerNamespace for Autocork {
    const SYSCTL_PATH: &'static CStr = c"net/ipv4";
    const PROC_NAME: &'static CStr = c"tcp_autocork_policy";

    fn subsystem() -> Pin<&'static Subsystem<Self>> {
        Pin::static_ref(&SUBSYSTEM)
    }

    fn sysctls() -> &'static [Sysctl<Self>] {
        &SYSCTLS
    }

    fn new() -> Result<Self> {
        Ok(Self {
            policy: Setting::new(Policy::DEFAULT as u32),
            deadline_us: Setting::new(DEADLINE_US.1),
            splice: Setting::new(Splice::DEFAULT as u32),
            counters: Counters::new()?,
        })
    }

    fn show(&self, file: &SeqFile) {
        seq_print!(file, "hook {}\n", HookState::now().name());
        seq_print!(file, "policy {}\n", self.policy().name());
        for counter in Counter::ALL {
            let sum = self.counters.sum(counter.index());
            seq_print!(file, "{} {}\n", counter.name(), sum);
        }
    }
}

/// The hook on `tcp_push()`.
struct PushHook;

impl Hook for PushHook {
    type Function = TcpPush;

    #[inline(always)]
    fn on_entry(call: &PushCall<'_>) -> Option<Change> {
        if call.identity() == PROBED.get() {
            PROBED.set(SEEN);
            return None;
        }
        let autocork = call.namespace().state::<Autocork>()?;

        let push = Push {
            nonagle: call.socket_nonagle(),
            argument: call.nonagle(),
            more: call.more(),
            spliced: call.spliced()
                && autocork
                    .splice()
                    .covers(|| call.has_ktls(), || call.on_loopback_route()),
        };
        let verdict = autocork.policy().decide(push);
        autocork.count(Counter::Verdict(verdict));

        let hold = match verdict {
            Verdict::Bounded => call.bound_hold(autocork.deadline_us.get()),
            _ => Hold::None,
        };
        if hold != Hold::None {
            autocork.count(Counter::Held);
            if hold == Hold::BoundedAnew {
                autocork.count(Counter::Deadlines);
            }
        }
        let nagle_off = push.turns_nagle_off();
        if nagle_off {
            autocork.count(Counter::Spliced);
        }
        call.trace(verdict as u32, hold != Hold::None, nagle_off);

        Some(Change {
            autocork_off: verdict == Verdict::Covered,
            nagle_off,
        })
    }
}

/// The hook on the timer that `bounded` sets, which only counts.
struct DeadlineHook;

impl Hook for DeadlineHook {
    type Function = TcpPaceKick;

    fn on_entry(call: &PaceKick<'_>) -> Option<core::convert::Infallible> {
        // On a socket that TCP paces, nobody can tell what the timer was set for.
        if call.is_paced() {
            return None;
        }
        let autocork = call.namespace().state::<Autocork>()?;

        let held = call.is_held();
        autocork.count(if held {
            Counter::FlushedByDeadline
        } else {
            Counter::FlushedInTime
        });
        call.trace(held);
        None
    }
}

/// Whether the hook is in effect, found out by a write that it has to see.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum HookState {
    /// Not looked yet, or the probe could not be made.
    Unknown,
    /// The hook sees what it should.
    Active,
    /// `tcp_push()` was called and the hook did not see it.
    Inactive,
}

/// The socket that a probe is about to write to; 0 when there is none.
static PROBED: Setting<usize> = Setting::new(0);
/// What the hook leaves in [`PROBED`] when it has seen the probe: the address of no socket.
const SEEN: usize = 1;
/// The last [`HookState`], by its number.
static HOOK_STATE: Setting<u32> = Setting::new(HookState::Unknown as u32);

impl HookState {
    fn now() -> Self {
        match HOOK_STATE.get() {
            1 => HookState::Active,
            2 => HookState::Inactive,
            _ => HookState::Unknown,
        }
    }

    fn name(self) -> &'static str {
        match self {
            HookState::Unknown => "unknown",
            HookState::Active => "active",
            HookState::Inactive => "inactive",
        }
    }

    fn probe() -> Self {
        let pushed = PushProbe::new().and_then(|probe| {
            PROBED.set(probe.identity());
            probe.push()
        });
        let seen = PROBED.get() == SEEN;
        PROBED.set(0);

        match pushed {
            Ok(()) if seen => HookState::Active,
            Ok(()) => HookState::Inactive,
            Err(_) => HookState::Unknown,
        }
    }
}

/// Looks at the hook now and then, and says so when it came or went.
struct Watch;

impl Task for Watch {
    const INTERVAL_MS: u32 = 15_000;

    fn run() {
        let (before, now) = (HookState::now(), HookState::probe());
        HOOK_STATE.set(now as u32);
        match now {
            HookState::Inactive if before != now => pr_warn!(
                "the hook on tcp_push() is not in effect, sockets are autocorked as in stock; \
                 is kernel.ftrace_enabled=0?\n"
            ),
            HookState::Active if before == HookState::Inactive => {
                pr_info!("the hook on tcp_push() is in effect again\n")
            }
            _ => (),
        }
    }
}

/// The module: the state of every namespace, and the hooks that read it.
#[pin_data]
struct AutocorkModule {
    // Dropped in this order: no hook runs when the namespaces lose their state.
    #[pin]
    watch: Periodic<Watch>,
    #[pin]
    deadline_hook: hook::Registration<DeadlineHook>,
    #[pin]
    push_hook: hook::Registration<PushHook>,
    namespaces: netns::Registration<Autocork>,
}

impl kernel::InPlaceModule for AutocorkModule {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        // Initialised in this order: the namespaces have their state when the hooks begin.
        try_pin_init!(Self {
            namespaces: netns::Registration::new()?,
            push_hook <- hook::Registration::new(),
            deadline_hook <- hook::Registration::new(),
            watch <- Periodic::new(),
            _: {
                pr_info!(
                    "autocorking follows TCP_NODELAY (policy {}); off: sysctl net.ipv4.tcp_autocork_policy=stock, or rmmod\n",
                    Policy::DEFAULT.name()
                );
                Watch::run();
            },
        }? Error)
    }
}
