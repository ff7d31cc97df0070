// SPDX-License-Identifier: GPL-2.0

//! Hooks on the entry of kernel functions, by ftrace.
//!
//! C header: [`include/linux/ftrace.h`](srctree/include/linux/ftrace.h)
//!
//! # Vocabulary
//!
//! - A [`Function`] is a function of the kernel: its name, its arguments as typed values, and which
//!   of them a hook may change.
//! - A [`Hook`] looks at a call and may answer with a change.
//! - A [`Registration`] puts a hook in place; dropping it takes the hook away and waits until no
//!   CPU is inside it.
//!
//! ```text
//!   caller ──► function: call to ftrace ──► registers saved ──► Hook::on_entry(arguments)
//!                 │                                                      │ Option<Change>
//!                 ▼                                                      ▼
//!              function goes on ◄── registers loaded ◄── Function::apply writes the register
//! ```
//!
//! Nothing is redirected (no IPMODIFY), so livepatch, kprobes and tracers of the same function
//! work beside a hook, in any order.

use core::{
    marker::{
        PhantomData,
        PhantomPinned, //
    },
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    prelude::*,
    sync::rcu,
    types::Opaque, //
};

use super::bindings;

/// The saved registers of a call.
///
/// # Invariants
///
/// `regs` is valid and exclusive for the lifetime `'a`, during which the CPU is an RCU reader.
pub(crate) struct Registers<'a> {
    regs: NonNull<bindings::__arch_ftrace_regs>,
    _call: PhantomData<&'a mut bindings::__arch_ftrace_regs>,
}

#[cfg(not(any(CONFIG_X86_64, CONFIG_ARM64)))]
compile_error!("the ftrace_regs of this architecture are not known; x86-64 and arm64 are");

impl Registers<'_> {
    /// Where argument `N` of the call is saved, from 0. Those in registers only: the first six
    /// (x86-64) or eight (arm64).
    #[cfg(CONFIG_X86_64)]
    #[inline(always)]
    fn slot<const N: usize>(&self) -> *mut c_ulong {
        let regs = self.regs.as_ptr();
        // SAFETY: By the type invariant the registers are valid; this takes addresses only.
        unsafe {
            match N {
                0 => &raw mut (*regs).regs.di,
                1 => &raw mut (*regs).regs.si,
                2 => &raw mut (*regs).regs.dx,
                3 => &raw mut (*regs).regs.cx,
                4 => &raw mut (*regs).regs.r8,
                5 => &raw mut (*regs).regs.r9,
                _ => build_error!("this argument does not travel in a register"),
            }
        }
    }

    /// Where argument `N` of the call is saved, from 0. Those in registers only.
    #[cfg(CONFIG_ARM64)]
    #[inline(always)]
    fn slot<const N: usize>(&self) -> *mut c_ulong {
        build_assert!(N < 8, "this argument does not travel in a register");
        // SAFETY: By the type invariant the registers are valid, and `N` is one of them.
        unsafe {
            (&raw mut (*self.regs.as_ptr()).regs)
                .cast::<c_ulong>()
                .add(N)
        }
    }

    /// Argument `N` of the call.
    #[inline(always)]
    pub(super) fn argument<const N: usize>(&self) -> usize {
        // SAFETY: By the type invariant.
        unsafe { *self.slot::<N>() }
    }

    /// Replaces argument `N` of the call: the saved registers are loaded again before the function
    /// goes on.
    #[inline(always)]
    pub(super) fn set_argument<const N: usize>(&mut self, value: usize) {
        // SAFETY: By the type invariant, exclusive.
        unsafe { *self.slot::<N>() = value };
    }
}

/// A function of the kernel that can be hooked.
///
/// # Safety
///
/// `NAME` must be a function whose arguments are as [`arguments`](Self::arguments) takes them, and
/// for which every value of [`Change`](Self::Change) is as good an argument as the caller's.
pub(crate) unsafe trait Function: 'static {
    /// Its symbol.
    const NAME: &'static CStr;
    /// Its arguments.
    type Call<'a>;
    /// What a hook may change of them.
    type Change;

    /// The arguments of a call.
    ///
    /// # Safety
    ///
    /// `regs` must be those of a call of this function, at its entry.
    unsafe fn arguments<'a>(regs: &'a Registers<'_>) -> Self::Call<'a>;

    /// Changes an argument of a call.
    fn apply(regs: &mut Registers<'_>, change: Self::Change);
}

/// A hook on the entry of a function.
pub(crate) trait Hook: 'static {
    /// The function.
    type Function: Function;

    /// A call is about to begin, in the caller's context and as an RCU reader: do not sleep.
    /// Returns the change to be made to it, if any.
    ///
    /// Must not call the hooked function itself: nothing here stops the recursion. (What interrupts
    /// the hook may call it, on behalf of something else.)
    fn on_entry(
        call: &<Self::Function as Function>::Call<'_>,
    ) -> Option<<Self::Function as Function>::Change>;
}

/// A hook that is in place.
#[pin_data(PinnedDrop)]
pub(crate) struct Registration<H: Hook> {
    #[pin]
    ops: Opaque<bindings::ftrace_ops>,
    _hook: PhantomData<H>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: C serialises registration; a hook runs on any CPU and has no state of its own here.
unsafe impl<H: Hook> Send for Registration<H> {}
// SAFETY: Nothing is done through a shared reference.
unsafe impl<H: Hook> Sync for Registration<H> {}

impl<H: Hook> Registration<H> {
    /// Puts the hook in place. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` when ftrace knows no such function (it was inlined, or may not be traced),
    /// `ENODEV` when ftrace is dead on this kernel, `ENOMEM`.
    pub(crate) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            ops <- Opaque::try_ffi_init(|ops: *mut bindings::ftrace_ops| {
                // SAFETY: `ops` is valid for writes and pinned; `struct ftrace_ops` is valid when
                // zeroed.
                unsafe {
                    ops.write(core::mem::zeroed());
                    (*ops).func = Some(Self::thunk);
                    (*ops).flags = bindings::LOWTAIL_FTRACE_FLAGS as usize;
                }
                let name = <H::Function as Function>::NAME;
                // SAFETY: `ops` is initialised; C does not keep or write to the name.
                to_result(unsafe {
                    bindings::ftrace_set_filter(
                        ops,
                        name.as_char_ptr().cast_mut(),
                        name.to_bytes().len() as c_int,
                        1,
                    )
                })?;
                // SAFETY: `ops` is initialised, with a filter, and stays until `drop`.
                to_result(unsafe { bindings::register_ftrace_function(ops) }).inspect_err(|_| {
                    // SAFETY: Not registered, so the filter is ours to free.
                    unsafe { bindings::ftrace_free_filter(ops) }
                })
            }),
            _hook: PhantomData,
            _pin: PhantomPinned,
        })
    }

    /// `struct ftrace_ops`, `func`.
    ///
    /// # Safety
    ///
    /// ftrace calls it at the entry of `H::Function`, with the saved registers.
    unsafe extern "C" fn thunk(
        _ip: c_ulong,
        _parent_ip: c_ulong,
        _ops: *mut bindings::ftrace_ops,
        regs: *mut bindings::ftrace_regs,
    ) {
        // CAST: `arch_ftrace_regs()`.
        let Some(regs) = NonNull::new(regs.cast()) else {
            return;
        };
        // Instead of ftrace's own protection (FTRACE_OPS_FL_RECURSION), which costs twice as many
        // instructions and guards against what a hook does not do.
        let _reader = rcu::read_lock();
        // INVARIANT: ftrace saved the registers for this call; nobody else looks at them until the
        // function goes on. The guard is dropped after them.
        let mut regs = Registers {
            regs,
            _call: PhantomData,
        };
        // SAFETY: The filter names this function and no other.
        let change = H::on_entry(&unsafe { H::Function::arguments(&regs) });
        if let Some(change) = change {
            H::Function::apply(&mut regs, change);
        }
    }
}

#[pinned_drop]
impl<H: Hook> PinnedDrop for Registration<H> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by `new`. Waits for CPUs that are inside the hook; then nobody refers
        // to the filter.
        unsafe {
            bindings::unregister_ftrace_function(self.ops.get());
            bindings::ftrace_free_filter(self.ops.get());
        }
    }
}
