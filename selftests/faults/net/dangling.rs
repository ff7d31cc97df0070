// SPDX-License-Identifier: GPL-2.0

//! Unsafe code that is wrong on purpose, for KASAN to find.

use kernel::prelude::*;

/// Reads memory after it was freed.
pub(crate) fn read_after_free() -> Result<u8> {
    let mut bytes = KVec::from_elem(0x42u8, 64, GFP_KERNEL)?;
    let within: *mut u8 = &raw mut bytes[17];
    drop(bytes);
    // SAFETY: Not at all: the memory was freed, which is the fault.
    Ok(unsafe { within.read_volatile() })
}
