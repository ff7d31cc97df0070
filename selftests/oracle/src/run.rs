// SPDX-License-Identifier: GPL-2.0

//! Runs a history on both sides and compares them after every step.
//!
//! Two things `dctcp_floor` does later than core TCP, on purpose, since it is called later:
//!
//! - It judges whether the application used the window at the first callback after a transmission;
//!   core TCP at the end of the transmission. Until then the window and what belongs to the
//!   judgement may differ and are not compared. A timer in between, or an ACK older than SND.UNA
//!   (which comes without `in_ack_event`), would see the window not yet judged, and a setting or an
//!   RTO that changed would be judged by; before such a step it is judged here. In
//!   histories with `late 0` it is judged after every step, so that all is compared always.
//! - It looks at idle time when core TCP is about to send, core TCP when data is queued: the same
//!   moment, but for several segments that are queued while nothing is in flight and all of them
//!   have to wait. The application of these histories writes one then.
//!
//! It reduces before it restarts where core TCP restarts first: an ACK with ECE and DSACK that finds
//! nothing in flight, data waiting, and a window of the peer's that changes. No DSACK comes then.
//!
//! One thing it cannot tell: an ACK that is older than SND.UNA and finds a loss by its DSACK comes
//! without `in_ack_event`, and while the reordering timer is due and has not been served yet it
//! looks like that timer. Old ACKs do not arrive then.

use std::{
    fmt::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    ffi::{self, tcp_sock},
    history::{describe, History, Step},
    Core, Module,
};

/// Clock and parameters are the process's: one history at a time.
static PROCESS: Mutex<()> = Mutex::new(());

/// The history that is being run, for [`tell_panics`].
static CURRENT: Mutex<Option<History>> = Mutex::new(None);

/// From now on a panic, which is one in a kernel too, prints the history that it happened in.
pub fn tell_panics() {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        hook(info);
        if let Ok(Some(history)) = CURRENT.try_lock().as_deref() {
            eprintln!("oracle: in this history:\n{history}");
        }
    }));
}

/// The least window.
const FLOOR: u32 = 2;

/// `TCP_CA_Loss`.
const CA_LOSS: u8 = 4;

/// Two sides, ready to run histories.
pub struct Pair {
    core: &'static ffi::oracle_core,
    /// The core of the other side, into which nothing is planted.
    plain: &'static ffi::oracle_core,
    module: Module,
    stock: *const ffi::tcp_congestion_ops,
    ours: *const ffi::tcp_congestion_ops,
    a: *mut tcp_sock,
    b: *mut tcp_sock,
    rto_floor: bool,
    /// A window below 2 was set from outside, or allowed until now; it is mended before the next packet.
    set_below: bool,
    /// The same before this step: ours may be mended, and then grow, within it.
    was_below: bool,
    _process: MutexGuard<'static, ()>,
}

/// How a history went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Passed {
    /// Steps that were compared.
    pub steps: u64,
    /// Steps in which stock's window fell below 2.
    pub floors: u64,
    /// Steps after which the connection was in each congestion state.
    pub states: [u64; 5],
    /// Steps after which an undo had happened.
    pub undone: u64,
    /// Timers that fired.
    pub timers: u64,
    /// Steps of a connection without ECN.
    pub fallback: u64,
    /// Steps in which a write shrank the window: idle time, underuse.
    pub decayed: u64,
}

impl Passed {
    /// Adds `other`.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.floors += other.floors;
        for (sum, n) in self.states.iter_mut().zip(other.states) {
            *sum += n;
        }
        self.undone += other.undone;
        self.timers += other.timers;
        self.fallback += other.fallback;
        self.decayed += other.decayed;
    }
}

/// The two sides are not alike.
#[derive(Clone, Debug)]
pub struct Difference {
    /// After which step, from 0; none: after the beginning.
    pub step: Option<usize>,
    /// What differs: stock's, ours.
    pub what: String,
}

impl Pair {
    /// Sides for `core` with `tcp_dctcp` on the one hand, `module` on the other.
    pub fn new(core: Core, module: Module) -> Self {
        let process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        (module.load)();
        // SAFETY: Plain C functions; `oracle_core()` returns a static; loading a module registers
        // its operations, which are static too; `oracle_new()` makes sockets that live until
        // `oracle_delete()`.
        unsafe {
            let ours = ffi::oracle_registered();
            let core = &*core.0();
            let plain = &*ffi::oracle_core();
            assert_eq!(core.load.expect("set")(), 0);
            let stock = core.registered.expect("set")();
            Self {
                core,
                plain,
                module,
                stock,
                ours,
                a: ffi::oracle_new(),
                b: ffi::oracle_new(),
                rto_floor: true,
                set_below: false,
                was_below: false,
                _process: process,
            }
        }
    }

    /// Runs `history`.
    ///
    /// # Errors
    ///
    /// The first difference.
    pub fn run(&mut self, history: &History) -> Result<Passed, Difference> {
        let mut passed = Passed::default();
        *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(history.clone());
        // SAFETY: Plain C functions on sockets of this pair's, which nobody else uses.
        unsafe {
            ffi::oracle_reset(history.before_wrap);
            for (which, value) in history.parameters.iter().enumerate() {
                self.set_parameter(which as u32, *value);
            }
            self.core.open.expect("set")(self.a, &history.start, self.stock);
            self.plain.open.expect("set")(self.b, &history.start, self.ours);
        }
        self.set_below = false;
        self.was_below = false;
        self.compare(history.late != 0, 0)
            .map_err(|what| Difference { step: None, what })?;

        for (n, step) in history.steps.iter().enumerate() {
            self.step(step, history.late != 0, &mut passed)
                .map_err(|what| Difference {
                    step: Some(n),
                    what: format!("{}: {what}", describe(step)),
                })?;
        }
        Ok(passed)
    }

    fn set_parameter(&mut self, which: u32, value: u32) {
        if which == ffi::ORACLE_RTO_FLOOR {
            self.rto_floor = value != 0;
        }
        // SAFETY: Plain C functions.
        unsafe {
            ffi::oracle_set_sysctl(which, value);
            self.core.set_parameter.expect("set")(which, value);
        }
        (self.module.set_parameter)(which, value);
    }

    /// One step on both sides.
    fn step(&mut self, step: &Step, late: bool, passed: &mut Passed) -> Result<(), String> {
        let prior_state = self.state();
        let raised = (self.module.raised)();
        self.was_below = self.set_below;
        match step.kind {
            ffi::ORACLE_PARAMETER => {
                self.judge();
                self.set_parameter(step.a % ffi::ORACLE_PARAMETERS, step.b);
            }
            // SAFETY: A plain C function.
            ffi::ORACLE_TIME => unsafe { ffi::oracle_pass(self.a, step) },
            _ => {
                // SAFETY: As in `run`.
                unsafe {
                    if step.kind == ffi::ORACLE_TIMER {
                        ffi::oracle_pass(self.a, step);
                        passed.timers += 1;
                    }
                    let (rto, cwnd) = (ffi::oracle_rto(self.a), ffi::oracle_cwnd(self.a));
                    self.core.step.expect("set")(self.a, step);
                    // What this step changes is not to be judged by.
                    let in_time = match step.kind {
                        ffi::ORACLE_WRITE | ffi::ORACLE_PUSH | ffi::ORACLE_RECEIVE => true,
                        ffi::ORACLE_ACK => step.c & ffi::ORACLE_ACK_OLD == 0,
                        _ => false,
                    };
                    if !in_time || ffi::oracle_rto(self.a) != rto {
                        self.judge();
                    }
                    self.plain.step.expect("set")(self.b, step);
                    if step.kind == ffi::ORACLE_WRITE && ffi::oracle_cwnd(self.a) < cwnd {
                        passed.decayed += 1;
                    }
                }
            }
        }
        if !late {
            self.judge();
        }
        // SAFETY: A plain C function.
        let cwnd = unsafe { ffi::oracle_cwnd(self.b) };
        // Or it was allowed until now, by rto_floor=N.
        let allowed = matches!(step.kind, ffi::ORACLE_SET_CWND | ffi::ORACLE_PARAMETER);
        self.set_below = cwnd < FLOOR && (self.set_below || allowed);

        let engaged = self.compare(late, prior_state)?;
        // What the operator is shown (`/proc/net/tcp_dctcp_floor`).
        let counted = (self.module.raised)() != raised;
        // A window that was allowed below the floor is raised later.
        let allowed = self.set_below || self.was_below || !self.rto_floor;
        if engaged != counted && !allowed {
            return Err(format!(
                "the floor was engaged: {engaged}, counted: {counted}"
            ));
        }
        passed.steps += 1;
        passed.floors += u64::from(engaged);
        passed.states[usize::from(self.state()).min(4)] += 1;
        // SAFETY: A plain C function.
        passed.fallback += u64::from(unsafe { ffi::oracle_falls_back(self.b, self.ours) });
        if prior_state >= 3 && self.state() < 3 {
            passed.undone += 1;
        }
        Ok(())
    }

    fn state(&self) -> u8 {
        // SAFETY: A plain C function.
        unsafe { ffi::oracle_state(self.a) }
    }

    /// Ours judges underuse now, if it has not yet.
    fn judge(&mut self) {
        // SAFETY: `b` is a connection of the module's, and nobody else uses it.
        unsafe { (self.module.judge)(self.b) };
    }

    /// Whether the sides are alike, as far as they have to be. `true` when the floor was engaged.
    fn compare(&mut self, late: bool, prior_state: u8) -> Result<bool, String> {
        // SAFETY: As in `run`.
        unsafe {
            let below = ffi::oracle_below(self.b);
            if below != 0 {
                return Err(format!("ours sent {below} packets with a window below 2"));
            }
            let low = ffi::oracle_low(self.a);
            ffi::oracle_low(self.b);
            if low < FLOOR {
                self.judge();
                let stock = ffi::oracle_cwnd(self.a);
                // RFC 5681's loss window stands with rto_floor=N, until it turns out to be wrong.
                let waived = !self.rto_floor && self.state() == CA_LOSS;
                let in_loss = waived && prior_state == CA_LOSS && ffi::oracle_may_undo(self.a);
                let engaged = match self.differ(false) {
                    Some(_) => !in_loss,
                    None => stock < FLOOR && !waived && !self.set_below,
                };
                if engaged {
                    return self.engaged().map(|()| true);
                }
            }

            let pending = late && !(self.module.is_judged)(self.b);
            let result = match self.differ(pending) {
                None => Ok(false),
                Some(what) => Err(what),
            };
            self.set_floor();
            result
        }
    }

    /// What differs.
    fn differ(&mut self, pending: bool) -> Option<String> {
        let mut what = String::new();
        let mut number = 0;
        // SAFETY: As in `run`.
        unsafe {
            loop {
                number = ffi::oracle_differ(self.a, self.b, number);
                if number < 0 {
                    break;
                }
                let name = std::ffi::CStr::from_ptr(ffi::oracle_name(number)).to_string_lossy();
                let judged_later = matches!(
                    &*name,
                    "snd_cwnd" | "snd_ssthresh" | "snd_cwnd_used" | "snd_cwnd_stamp"
                );
                if !(pending && judged_later) {
                    let stock = ffi::oracle_value(self.a, number);
                    let ours = ffi::oracle_value(self.b, number);
                    let _ = write!(what, "{name} {stock} {ours}, ");
                }
                number += 1;
            }
            let mut stock = ffi::oracle_private::default();
            self.core.get_private.expect("set")(self.a, &mut stock);
            let ours = (self.module.get_private)(self.b);
            // Reno has no use for it.
            if stock != ours && !ffi::oracle_falls_back(self.b, self.ours) {
                let _ = write!(what, "private data: {stock:?} {ours:?}");
            }
        }
        (!what.is_empty()).then_some(what)
    }

    /// Stock's window fell below 2: ours must hold, and stock goes on from there.
    fn engaged(&mut self) -> Result<(), String> {
        // SAFETY: As in `run`; both sockets were opened.
        unsafe {
            let (stock, ours) = (ffi::oracle_cwnd(self.a), ffi::oracle_cwnd(self.b));
            if stock < FLOOR && (ours < FLOOR || ours > FLOOR && !self.was_below) {
                return Err(format!(
                    "stock's window is {stock}, ours {ours} instead of 2"
                ));
            }
            if ffi::oracle_falls_back(self.a, self.stock)
                != ffi::oracle_falls_back(self.b, self.ours)
            {
                return Err("one side fell back to Reno".to_owned());
            }
            // What was delivered and marked has nothing to do with the window.
            let private = (self.module.get_private)(self.b);
            let mut theirs = ffi::oracle_private::default();
            self.core.get_private.expect("set")(self.a, &mut theirs);
            theirs.loss_cwnd = private.loss_cwnd;
            if theirs != private && !ffi::oracle_falls_back(self.b, self.ours) {
                return Err(format!("private data: {theirs:?} {private:?}"));
            }
            ffi::oracle_copy(self.a, self.b);
            self.core.set_private.expect("set")(self.a, &private);
        }
        self.set_floor();
        Ok(())
    }

    /// From now on packets of ours that leave below the floor are counted.
    fn set_floor(&mut self) {
        // With rto_floor=N the window of 1 may outlive the state for a moment.
        let floor = if self.rto_floor { FLOOR } else { 0 };
        // SAFETY: A plain C function.
        unsafe { ffi::oracle_set_floor(self.b, floor) };
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // SAFETY: Made by `oracle_new()`, and not used any more.
        unsafe {
            ffi::oracle_delete(self.a);
            ffi::oracle_delete(self.b);
        }
    }
}
