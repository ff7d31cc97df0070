// SPDX-License-Identifier: GPL-2.0

//! Counters of which every CPU has its own copy, so that counting writes no shared cache line.
//!
//! C header: [`include/linux/percpu.h`](srctree/include/linux/percpu.h)

use core::ptr::NonNull;

use kernel::prelude::*;

use super::bindings;

/// `N` counters that start at 0 and wrap at 2⁶⁴.
///
/// # Invariants
///
/// `counters` is a per-CPU allocation of `N` times `u64`.
pub(crate) struct Counters<const N: usize> {
    counters: NonNull<u64>,
}

// SAFETY: The allocation belongs to no thread.
unsafe impl<const N: usize> Send for Counters<N> {}
// SAFETY: Counters are added to with `this_cpu_inc()` and read with `READ_ONCE()`.
unsafe impl<const N: usize> Sync for Counters<N> {}

impl<const N: usize> Counters<N> {
    /// Allocates the counters. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: Allocates; `N` is a handful.
        let counters = unsafe { bindings::lowtail_percpu_alloc(N as u32) };
        // INVARIANT: Just allocated.
        Ok(Self {
            counters: NonNull::new(counters).ok_or(ENOMEM)?,
        })
    }

    /// Adds 1 to counter `i`. From any context; out of range counts nothing.
    #[inline(always)]
    pub(crate) fn inc(&self, i: usize) {
        if i < N {
            // SAFETY: By the type invariant, and `i` is in range.
            unsafe { this_cpu_inc(self.counters.as_ptr().wrapping_add(i)) };
        }
    }

    /// The sum of counter `i` over all CPUs; 0 out of range.
    pub(crate) fn sum(&self, i: usize) -> u64 {
        if i >= N {
            return 0;
        }
        // SAFETY: By the type invariant, and `i` is in range.
        unsafe { bindings::lowtail_percpu_sum(self.counters.as_ptr(), i as u32) }
    }
}

/// `this_cpu_inc()`: one instruction, which no interrupt can divide.
///
/// # Safety
///
/// `counter` must be in a per-CPU allocation.
#[cfg(all(CONFIG_X86_64, CONFIG_SMP))]
#[inline(always)]
unsafe fn this_cpu_inc(counter: *mut u64) {
    // SAFETY: On x86-64 a per-CPU pointer is an offset from GS, which is this CPU's base; by the
    // safety requirement there is a `u64` at it.
    unsafe {
        core::arch::asm!(
            "inc qword ptr gs:[{counter}]",
            counter = in(reg) counter,
            options(nostack)
        )
    };
}

/// `this_cpu_inc()`.
///
/// # Safety
///
/// `counter` must be in a per-CPU allocation.
#[cfg(not(all(CONFIG_X86_64, CONFIG_SMP)))]
#[inline(always)]
unsafe fn this_cpu_inc(counter: *mut u64) {
    // SAFETY: By the safety requirement.
    unsafe { bindings::lowtail_percpu_inc(counter, 0) };
}

impl<const N: usize> Drop for Counters<N> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; nobody refers to them any more.
        unsafe { bindings::lowtail_percpu_free(self.counters.as_ptr()) };
    }
}
