// SPDX-License-Identifier: GPL-2.0

//! `lowtail_faults`: faults that can be switched on, each counted. Test-only; never installed.
//!
//! Every network namespace has, off at first, with the text that `fault/plan.rs` describes:
//!
//! | sysctl `net.lowtail_faults.…` | candidates | what happens to those that are hit |
//! |---|---|---|
//! | `tsq` | completions that are to wake a throttled socket up, with no other one to follow | nobody wakes it up until an ACK comes (the race that a barrier in `tcp_push()` ended, netdev 2024-01) |
//! | `late` | data packets handed to a device | completed `delay` µs later, as by a slow NIC |
//! | `ce` | the last packet of what was written, if ECT and one packet | marked CE |
//! | `lone` | a new packet with nothing in flight and nothing to follow | lost |
//! | `rexmit` | retransmissions, loss probes with old data among them | lost |
//!
//! `/proc/net/lowtail_faults` counts, since the last plan that was not `off`: `seen`, the candidates;
//! `hit`; and `skipped`, what would have been hit or a candidate and could not.
//!
//! A namespace whose faults are off sends what it would send without this module.
//!
//! One difference to the real race: there the flag stays set, here it is taken away. Either way
//! the next completion or push of the socket puts things right.

use core::pin::Pin;

use kernel::{
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    sync::atomic::{
        Atomic,
        Relaxed, //
    }, //
};

use fault::plan::{
    Plan,
    Ports,
    When, //
};
use net::{
    hook::{
        self,
        Hook, //
    },
    local_out::{
        self,
        Filter,
        Outgoing,
        Verdict, //
    },
    netns::{
        self,
        PerNamespace, //
    },
    sysctl::{
        Sysctl,
        Text, //
    },
    tcp_wfree::{
        Completion,
        TcpWfree, //
    },
    transmit::{
        Completions,
        DevHardStartXmit,
        Transmission, //
    }, //
};

mod fault;

/// The abstractions that this module stands on: the product's, and this folder's own.
// Not everything that the product's modules use is used here.
#[allow(dead_code)]
mod net {
    #[path = "../../../rust/net/bindings.rs"]
    pub(crate) mod bindings;
    #[path = "../../../rust/net/hook.rs"]
    pub(crate) mod hook;
    #[path = "../../../rust/net/layout.rs"]
    mod layout;
    pub(crate) mod local_out;
    #[path = "../../../rust/net/netns.rs"]
    pub(crate) mod netns;
    mod packet;
    #[path = "../../../rust/net/setting.rs"]
    pub(crate) mod setting;
    #[path = "../../../rust/net/sysctl.rs"]
    pub(crate) mod sysctl;
    pub(crate) mod tcp_wfree;
    pub(crate) mod transmit;
}

module! {
    type: FaultsModule,
    name: "lowtail_faults",
    authors: ["The lowtail developers"],
    description: "Test-only: TCP transmit faults that can be switched on",
    license: "GPL v2",
}

static STATE: netns::Subsystem<Faults> = netns::Subsystem::new();
static WIRE: local_out::Subsystem<Wire> = local_out::Subsystem::new();

/// The faults of one network namespace.
struct Faults {
    tsq: Fault,
    late: Fault,
    ce: Fault,
    lone: Fault,
    rexmit: Fault,
}

impl Faults {
    /// Each with its name.
    fn all(&self) -> [(&'static str, &Fault); 5] {
        [
            ("tsq", &self.tsq),
            ("late", &self.late),
            ("ce", &self.ce),
            ("lone", &self.lone),
            ("rexmit", &self.rexmit),
        ]
    }
}

/// One fault: its plan, and how often it could strike and did.
///
/// Without a lock: packets sent while a plan is being written may meet members of both.
struct Fault {
    /// What `random` choices follow from.
    seed: u64,
    /// Its plan has a delay.
    delays: bool,
    /// [`Plan::when`]: kind in the upper half, N in the lower.
    when: Atomic<u64>,
    /// [`Plan::sport`] in the upper half, [`Plan::dport`] in the lower.
    ports: Atomic<u32>,
    limit: Atomic<u32>,
    delay_us: Atomic<u32>,
    seen: Atomic<u64>,
    hit: Atomic<u64>,
    skipped: Atomic<u64>,
}

impl Fault {
    const fn new(seed: u64, delays: bool) -> Self {
        Self {
            seed,
            delays,
            when: Atomic::new(0),
            ports: Atomic::new(0),
            limit: Atomic::new(0),
            delay_us: Atomic::new(0),
            seen: Atomic::new(0),
            hit: Atomic::new(0),
            skipped: Atomic::new(0),
        }
    }

    fn plan(&self) -> Plan {
        let when = self.when.load(Relaxed);
        let n = when as u32;
        let ports = self.ports.load(Relaxed);
        Plan {
            when: match when >> 32 {
                1 => When::Every(n),
                2 => When::Random(n),
                _ => When::Off,
            },
            sport: (ports >> 16) as u16,
            dport: ports as u16,
            limit: self.limit.load(Relaxed),
            delay_us: self.delay_us.load(Relaxed),
        }
    }

    /// Takes effect at the next packet. A plan that is not `off` begins to count from 0.
    fn set(&self, text: &[u8]) -> Result {
        let plan = Plan::parse(text, self.delays).ok_or(EINVAL)?;
        let when = match plan.when {
            When::Off => {
                self.when.store(0, Relaxed);
                return Ok(());
            }
            When::Every(n) => 1 << 32 | u64::from(n),
            When::Random(n) => 2 << 32 | u64::from(n),
        };
        self.when.store(0, Relaxed);
        for counter in [&self.seen, &self.hit, &self.skipped] {
            counter.store(0, Relaxed);
        }
        self.ports
            .store(u32::from(plan.sport) << 16 | u32::from(plan.dport), Relaxed);
        self.limit.store(plan.limit, Relaxed);
        self.delay_us.store(plan.delay_us, Relaxed);
        self.when.store(when, Relaxed);
        Ok(())
    }

    fn show(&self, text: &mut Text) {
        let _ = self.plan().write(text);
    }

    /// A candidate came by; says whether it is hit, and counts both.
    fn strikes(&self, ports: Ports) -> bool {
        let plan = self.plan();
        if !plan.covers(ports) {
            return false;
        }
        let k = self.seen.fetch_add(1, Relaxed);
        if !plan.hits(self.seed, k) {
            return false;
        }
        let hits = self.hit.fetch_add(1, Relaxed);
        if plan.limit != 0 && hits >= plan.limit.into() {
            self.hit.fetch_sub(1, Relaxed);
            return false;
        }
        true
    }

    /// Something that would have been a candidate could not be one.
    fn skip(&self, ports: Ports) {
        if self.plan().covers(ports) {
            self.skipped.add(1, Relaxed);
        }
    }

    /// What was counted as hit could not be.
    fn miss(&self) {
        self.hit.fetch_sub(1, Relaxed);
        self.skipped.add(1, Relaxed);
    }
}

/// `net.lowtail_faults.*`.
static SYSCTLS: [Sysctl<Faults>; 5] = [
    Sysctl {
        name: c"tsq",
        read: |faults, text| faults.tsq.show(text),
        write: Some(|faults, text| faults.tsq.set(text)),
    },
    Sysctl {
        name: c"late",
        read: |faults, text| faults.late.show(text),
        write: Some(|faults, text| faults.late.set(text)),
    },
    Sysctl {
        name: c"ce",
        read: |faults, text| faults.ce.show(text),
        write: Some(|faults, text| faults.ce.set(text)),
    },
    Sysctl {
        name: c"lone",
        read: |faults, text| faults.lone.show(text),
        write: Some(|faults, text| faults.lone.set(text)),
    },
    Sysctl {
        name: c"rexmit",
        read: |faults, text| faults.rexmit.show(text),
        write: Some(|faults, text| faults.rexmit.set(text)),
    },
];

impl PerNamespace for Faults {
    const SYSCTL_PATH: &'static CStr = c"net/lowtail_faults";
    const PROC_NAME: &'static CStr = c"lowtail_faults";

    fn subsystem() -> Pin<&'static netns::Subsystem<Self>> {
        Pin::static_ref(&STATE)
    }

    fn sysctls() -> &'static [Sysctl<Self>] {
        &SYSCTLS
    }

    fn new() -> Result<Self> {
        Ok(Self {
            tsq: Fault::new(1, false),
            late: Fault::new(2, true),
            ce: Fault::new(3, false),
            lone: Fault::new(4, false),
            rexmit: Fault::new(5, false),
        })
    }

    fn show(&self, file: &SeqFile) {
        for (name, fault) in self.all() {
            seq_print!(file, "{name}_seen {}\n", fault.seen.load(Relaxed));
            seq_print!(file, "{name}_hit {}\n", fault.hit.load(Relaxed));
            seq_print!(file, "{name}_skipped {}\n", fault.skipped.load(Relaxed));
        }
    }
}

/// The fault `tsq`: the hook on `tcp_wfree()`.
struct LostWakeup;

impl Hook for LostWakeup {
    type Function = TcpWfree;

    fn on_entry(completion: &Completion<'_>) -> Option<core::convert::Infallible> {
        if completion.wakeup_is_due() {
            let faults = completion.namespace().state::<Faults>()?;
            if faults.tsq.strikes(completion.ports()) {
                completion.lose_wakeup();
            }
        }
        None
    }
}

/// The fault `late`: the hook on `dev_hard_start_xmit()`.
struct LateCompletion;

impl Hook for LateCompletion {
    type Function = DevHardStartXmit;

    fn on_entry(transmission: &Transmission<'_>) -> Option<core::convert::Infallible> {
        transmission.for_each_charged(|packet| {
            let Some(faults) = packet.namespace().state::<Faults>() else {
                return;
            };
            let late = &faults.late;
            if late.strikes(packet.ports()) && packet.complete_after(late.plan().delay_us).is_err()
            {
                late.miss();
            }
        });
        None
    }
}

/// The faults `ce`, `lone` and `rexmit`: the filter on what is sent.
struct Wire;

impl Filter for Wire {
    fn subsystem() -> Pin<&'static local_out::Subsystem<Self>> {
        Pin::static_ref(&WIRE)
    }

    fn on_segment(outgoing: &Outgoing<'_>) -> Verdict {
        let Some(faults) = outgoing.namespace().state::<Faults>() else {
            return Verdict::Pass;
        };
        let segment = outgoing.segment();
        let ports = outgoing.ports();

        if segment.is_retransmission() && faults.rexmit.strikes(ports) {
            return Verdict::Lose;
        }
        if segment.is_lone() && faults.lone.strikes(ports) {
            return Verdict::Lose;
        }
        if segment.ends_request() {
            if !segment.can_be_marked_alone() {
                faults.ce.skip(ports);
            } else if faults.ce.strikes(ports) {
                return Verdict::Mark;
            }
        }
        Verdict::Pass
    }
}

/// The module: the state of every namespace, and the hooks that read it.
#[pin_data]
struct FaultsModule {
    // Dropped in this order: no hook runs when the completions end and the namespaces lose their
    // state.
    #[pin]
    lost_wakeup: hook::Registration<LostWakeup>,
    #[pin]
    late_completion: hook::Registration<LateCompletion>,
    wire: local_out::Registration<Wire>,
    completions: Completions,
    namespaces: netns::Registration<Faults>,
}

impl kernel::InPlaceModule for FaultsModule {
    fn init(_module: &'static ThisModule) -> impl PinInit<Self, Error> {
        // Initialised in this order: what the hooks use is there before them.
        try_pin_init!(Self {
            namespaces: netns::Registration::new()?,
            completions: Completions::new()?,
            wire: local_out::Registration::new()?,
            late_completion <- hook::Registration::new(),
            lost_wakeup <- hook::Registration::new(),
            _: {
                pr_info!("a test-only module: faults can be switched on in net.lowtail_faults\n");
            },
        }? Error)
    }
}
