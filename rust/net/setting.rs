// SPDX-License-Identifier: GPL-2.0

//! A machine word that is written now and then and read all the time.
//!
//! `kernel::sync::atomic` reads through a function of C; on the path of every packet that is a
//! dozen instructions for one load. This is `READ_ONCE()` and `WRITE_ONCE()`, and nothing more: no
//! ordering with other memory, which no user of a setting may rely on.

use core::cell::UnsafeCell;

/// Words that a CPU reads and writes whole.
pub(crate) trait Word: Copy {}

impl Word for u32 {}
impl Word for usize {}

/// A word of type `T`.
pub(crate) struct Setting<T>(UnsafeCell<T>);

// SAFETY: All access is by volatile loads and stores of a machine word, as the kernel's memory
// model has `READ_ONCE()` and `WRITE_ONCE()`, which do not race.
unsafe impl<T: Word + Send> Sync for Setting<T> {}

impl<T: Word> Setting<T> {
    /// A setting with this value.
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// The present value.
    #[inline(always)]
    pub(crate) fn get(&self) -> T {
        // SAFETY: The cell is valid; see `Sync` for concurrent writers.
        unsafe { self.0.get().read_volatile() }
    }

    /// Replaces the value.
    #[inline(always)]
    pub(crate) fn set(&self, value: T) {
        // SAFETY: The cell is valid; see `Sync` for concurrent readers and writers.
        unsafe { self.0.get().write_volatile(value) };
    }

    /// The word, for C to write.
    pub(super) fn as_ptr(&self) -> *mut T {
        self.0.get()
    }
}
