// SPDX-License-Identifier: GPL-2.0

//! Work that is done again and again, in process context.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use core::marker::{
    PhantomData,
    PhantomPinned, //
};

use kernel::{
    prelude::*,
    types::Opaque, //
};

use super::bindings;

/// Something to be done every [`INTERVAL_MS`](Self::INTERVAL_MS) milliseconds.
pub(crate) trait Task: 'static {
    /// Milliseconds between the end of one run and the beginning of the next.
    const INTERVAL_MS: u32;

    /// Does it. May sleep.
    fn run();
}

/// A task that is being done; dropping it waits for the run that is going on, and ends it.
#[pin_data(PinnedDrop)]
pub(crate) struct Periodic<T: Task> {
    #[pin]
    work: Opaque<bindings::delayed_work>,
    _task: PhantomData<T>,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: A work item belongs to no thread.
unsafe impl<T: Task> Send for Periodic<T> {}
// SAFETY: Nothing is done through a shared reference.
unsafe impl<T: Task> Sync for Periodic<T> {}

impl<T: Task> Periodic<T> {
    /// Begins: the first run comes after one interval.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            work <- Opaque::ffi_init(|work: *mut bindings::delayed_work| {
                // SAFETY: `work` is pinned and stays until `drop`, which cancels it.
                unsafe {
                    bindings::lowtail_work_init(work, Some(Self::run));
                    bindings::lowtail_work_schedule(work, T::INTERVAL_MS);
                }
            }),
            _task: PhantomData,
            _pin: PhantomPinned,
        })
    }

    /// `work_func_t`.
    ///
    /// # Safety
    ///
    /// C calls it with the `work` of a `delayed_work` that [`new`](Self::new) made.
    unsafe extern "C" fn run(work: *mut bindings::work_struct) {
        T::run();
        // SAFETY: `struct delayed_work` begins with its `work`. Cancelling waits for this run and
        // takes back what it scheduled.
        unsafe { bindings::lowtail_work_schedule(work.cast(), T::INTERVAL_MS) };
    }
}

#[pinned_drop]
impl<T: Task> PinnedDrop for Periodic<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Initialised by `new`.
        unsafe { bindings::cancel_delayed_work_sync(self.work.get()) };
    }
}
