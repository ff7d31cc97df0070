// SPDX-License-Identifier: GPL-2.0

//! Sysctls of a network namespace, as text that is read from and written to a Rust value.
//!
//! C header: [`include/linux/sysctl.h`](srctree/include/linux/sysctl.h)

use core::{
    ops::RangeInclusive,
    ptr, //
};

use kernel::{
    error::from_result,
    prelude::*, //
};

use super::bindings;

/// What a sysctl's text says: pure, and tested on the host from the same file.
#[path = "../policy/text.rs"]
mod text;
pub(crate) use text::Text;
use text::MAX_LEN;

/// One sysctl of a value of type `T`.
pub(crate) struct Sysctl<T: 'static> {
    /// Its name.
    pub(crate) name: &'static CStr,
    /// Writes the present text.
    pub(crate) read: fn(&T, &mut Text),
    /// Takes a new text, without the newline. What it refuses (`EINVAL`) leaves the value as it
    /// was. `None` for a sysctl that is read-only.
    pub(crate) write: Option<fn(&T, &[u8]) -> Result>,
}

/// The decimal number `text`, if it lies within `range`.
///
/// # Errors
///
/// `EINVAL` otherwise.
pub(crate) fn number(text: &[u8], range: RangeInclusive<u32>) -> Result<u32> {
    text::number(text, range).ok_or(EINVAL)
}

/// A registered table of sysctls.
///
/// # Invariants
///
/// `header` is registered, and refers to `entries`, which do not move.
pub(super) struct Table {
    header: *mut bindings::ctl_table_header,
    _entries: KVec<bindings::ctl_table>,
}

// SAFETY: The table belongs to no thread.
unsafe impl Send for Table {}
// SAFETY: Nothing is done through a shared reference.
unsafe impl Sync for Table {}

impl Table {
    /// Registers `sysctls` of `value` under `path` in `net`.
    ///
    /// # Safety
    ///
    /// `net` must be valid, and `value` valid and shared only, for as long as the table lives.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; also when a name is taken (the kernel log says which).
    pub(super) unsafe fn new<T: Sync + 'static>(
        net: *mut bindings::net,
        path: &CStr,
        sysctls: &'static [Sysctl<T>],
        value: *const T,
    ) -> Result<Self> {
        let mut entries = KVec::with_capacity(sysctls.len(), GFP_KERNEL)?;
        for sysctl in sysctls {
            entries.push(
                bindings::ctl_table {
                    procname: sysctl.name.as_char_ptr(),
                    data: value.cast_mut().cast(),
                    maxlen: MAX_LEN as c_int,
                    mode: if sysctl.write.is_some() { 0o644 } else { 0o444 },
                    proc_handler: Some(handler::<T>),
                    extra1: ptr::from_ref(sysctl).cast_mut().cast(),
                    ..Default::default()
                },
                GFP_KERNEL,
            )?;
        }
        // SAFETY: `net` is valid; the entries live on the heap until the table is unregistered.
        let header = unsafe {
            bindings::lowtail_register_sysctls(
                net,
                path.as_char_ptr(),
                entries.as_mut_ptr(),
                entries.len(),
            )
        };
        if header.is_null() {
            return Err(ENOMEM);
        }
        // INVARIANT: Just registered.
        Ok(Self {
            header,
            _entries: entries,
        })
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: By the type invariant. Waits for handlers that are running.
        unsafe { bindings::unregister_net_sysctl_table(self.header) };
    }
}

/// # Safety
///
/// C calls it for an entry made by [`Table::new`] for `T`, with the arguments of a `proc_handler`.
unsafe extern "C" fn handler<T: Sync + 'static>(
    ctl: *const bindings::ctl_table,
    write: c_int,
    buffer: *mut c_void,
    lenp: *mut usize,
    ppos: *mut bindings::loff_t,
) -> c_int {
    // SAFETY: By the safety requirement: the entry is registered, so value and sysctl are valid.
    let (value, sysctl) = unsafe {
        (
            &*(*ctl).data.cast::<T>(),
            &*(*ctl).extra1.cast::<Sysctl<T>>(),
        )
    };

    from_result(|| {
        // On a write too: C may change a part of the present text only.
        let mut text = Text::new();
        (sysctl.read)(value, &mut text);
        let line = bindings::ctl_table {
            data: text.bytes_mut().as_mut_ptr().cast(),
            maxlen: MAX_LEN as c_int,
            ..Default::default()
        };
        // SAFETY: The caller's buffer, and a text of `maxlen` bytes that ends with NUL.
        kernel::error::to_result(unsafe {
            bindings::proc_dostring(&line, write, buffer, lenp, ppos)
        })?;
        if write != 0 {
            sysctl.write.ok_or(EPERM)?(value, text.trimmed().ok_or(EINVAL)?)?;
        }
        Ok(0)
    })
}
