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
//! The whole of it is one argument: `size_goal`, which `tcp_push()` reads for the autocork test and
//! for nothing else, becomes 0.

use core::{
    fmt::Write,
    pin::Pin, //
};

use kernel::{
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        rcu, //
    }, //
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
    sysctl::{
        Sysctl,
        Text, //
    },
    tcp_push::{
        Call,
        SizeGoal,
        TcpPush, //
    }, //
};
use policy::{
    Policy,
    Push,
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
    pub(crate) mod sysctl;
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

/// Autocorking in one network namespace.
struct Autocork {
    /// The [`Policy`], by its number.
    policy: Atomic<u32>,
    /// Pushes, by [`Verdict`].
    pushes: Counters<{ Verdict::ALL.len() }>,
}

impl Autocork {
    fn policy(&self) -> Policy {
        Policy::from_index(self.policy.load(Relaxed))
    }

    /// Takes effect at the next write.
    fn choose(&self, name: &[u8]) -> Result {
        let policy = Policy::from_name(name).ok_or(EINVAL)?;
        self.policy.store(policy as u32, Relaxed);
        Ok(())
    }
}

/// `net.ipv4.tcp_autocork_policy` and `net.ipv4.tcp_available_autocork_policy`.
static SYSCTLS: [Sysctl<Autocork>; 2] = [
    Sysctl {
        name: c"tcp_autocork_policy",
        read: |autocork, text| {
            let _ = text.write_str(autocork.policy().name());
        },
        write: Some(Autocork::choose),
    },
    Sysctl {
        name: c"tcp_available_autocork_policy",
        read: |_, text| list_policies(text),
        write: None,
    },
];

fn list_policies(text: &mut Text) {
    for (i, policy) in Policy::ALL.into_iter().enumerate() {
        let separator = if i == 0 { "" } else { " " };
        let _ = text.write_str(separator);
        let _ = text.write_str(policy.name());
    }
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
            policy: Atomic::new(Policy::DEFAULT as u32),
            pushes: Counters::new()?,
        })
    }

    fn show(&self, file: &SeqFile) {
        seq_print!(file, "policy {}\n", self.policy().name());
        for verdict in Verdict::ALL {
            seq_print!(
                file,
                "{} {}\n",
                verdict.name(),
                self.pushes.sum(verdict as usize)
            );
        }
    }
}

/// The hook on `tcp_push()`.
struct PushHook;

impl Hook for PushHook {
    type Function = TcpPush;

    fn on_entry(call: &Call<'_>) -> Option<SizeGoal> {
        let guard = rcu::read_lock();
        let autocork = call.namespace().state::<Autocork>(&guard)?;

        let verdict = autocork.policy().decide(Push {
            nonagle: call.socket_nonagle(),
            argument: call.nonagle(),
            more: call.more(),
        });
        autocork.pushes.inc(verdict as usize);
        (verdict == Verdict::Covered).then_some(SizeGoal(0))
    }
}

/// The module: the state of every namespace, and the hook that reads it.
#[pin_data]
struct AutocorkModule {
    // Dropped in this order: no hook runs when the namespaces lose their state.
    #[pin]
    hook: hook::Registration<PushHook>,
    namespaces: netns::Registration<Autocork>,
}

impl kernel::InPlaceModule for AutocorkModule {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        // Initialised in this order: the namespaces have their state when the hook begins.
        try_pin_init!(Self {
            namespaces: netns::Registration::new()?,
            hook <- hook::Registration::new(),
            _: {
                pr_info!(
                    "tcp_push() is hooked, policy {}; off: sysctl net.ipv4.tcp_autocork_policy=stock, or rmmod\n",
                    Policy::DEFAULT.name()
                );
            },
        }? Error)
    }
}
