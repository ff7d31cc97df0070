// SPDX-License-Identifier: GPL-2.0

//! `THIS_MODULE`, for C structures in `static`s.
//!
//! Kernels differ in what `module!` makes of it, a `static` (7.2) or a constant of a trait (7.3);
//! the symbol behind both is the same.

use kernel::bindings::module;

extern "C" {
    /// Made by the kernel's build for every module. The type stands for the address only.
    static __this_module: u8;
}

/// The module that this is compiled into.
pub(super) const fn as_ptr() -> *mut module {
    (&raw const __this_module).cast_mut().cast()
}
