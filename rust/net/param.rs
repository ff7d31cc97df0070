// SPDX-License-Identifier: GPL-2.0

//! Module parameters that can be read and written at run time, with a checked range.
//!
//! C header: [`include/linux/moduleparam.h`](srctree/include/linux/moduleparam.h)
//!
//! The parameters of `module!` can be set when the module is loaded only and do not show in
//! sysfs. These show under `/sys/module/<module>/parameters/`, mode 0644. A value out of range is
//! refused with `EINVAL`, at `insmod` as at a write, and the old one stays.

use core::cell::UnsafeCell;

use kernel::prelude::*;

use super::{
    bindings,
    this_module, //
};

/// `struct kernel_param`, as it lies in a module's `__param` section.
#[repr(transparent)]
pub(crate) struct KernelParam(bindings::kernel_param);

// SAFETY: C serialises access by the module's parameter lock; Rust never looks into it.
unsafe impl Sync for KernelParam {}

/// `struct kernel_param_ops`.
#[repr(transparent)]
pub(crate) struct ParamOps(bindings::kernel_param_ops);

// SAFETY: Never written.
unsafe impl Sync for ParamOps {}

/// A parameter of type `unsigned int` that lies within `MIN..=MAX`.
#[repr(transparent)]
pub(crate) struct Uint<const MIN: u32, const MAX: u32>(UnsafeCell<u32>);

// SAFETY: C writes the value, in one store; `get` reads it, in one load.
unsafe impl<const MIN: u32, const MAX: u32> Sync for Uint<MIN, MAX> {}

impl<const MIN: u32, const MAX: u32> Uint<MIN, MAX> {
    /// How C reads and writes it.
    pub(crate) const OPS: ParamOps = ParamOps(bindings::kernel_param_ops {
        flags: 0,
        set: Some(Self::set),
        get: Some(bindings::param_get_uint),
        free: None,
    });

    /// A parameter with this default.
    pub(crate) const fn new(default: u32) -> Self {
        assert!(MIN <= default && default <= MAX);
        Self(UnsafeCell::new(default))
    }

    /// The present value (`READ_ONCE()`; the kernel crate's atomics call into C for a load).
    #[inline]
    pub(crate) fn get(&self) -> u32 {
        // SAFETY: Valid, aligned, and any `u32` is one.
        unsafe { self.0.get().read_volatile() }
    }

    /// `struct kernel_param_ops`, `set`.
    ///
    /// # Safety
    ///
    /// C calls it for a parameter whose `arg` is the `u32` within a `Self`.
    unsafe extern "C" fn set(val: *const c_char, kp: *const bindings::kernel_param) -> c_int {
        // SAFETY: C passes a string and a parameter whose `arg` is the `u32` within a `Self`.
        unsafe { bindings::param_set_uint_minmax(val, kp, MIN, MAX) }
    }
}

/// A parameter of type `bool`: `Y` or `N`.
#[repr(transparent)]
pub(crate) struct Bool(UnsafeCell<bool>);

// SAFETY: As for `Uint`.
unsafe impl Sync for Bool {}

impl Bool {
    /// How C reads and writes it.
    pub(crate) const OPS: ParamOps = ParamOps(bindings::kernel_param_ops {
        // KERNEL_PARAM_OPS_FL_NOARG: the name alone means `Y`.
        flags: 1,
        set: Some(bindings::param_set_bool),
        get: Some(bindings::param_get_bool),
        free: None,
    });

    /// A parameter with this default.
    pub(crate) const fn new(default: bool) -> Self {
        Self(UnsafeCell::new(default))
    }

    /// The present value (`READ_ONCE()`).
    #[inline]
    pub(crate) fn get(&self) -> bool {
        // SAFETY: Valid and aligned; C writes 0 or 1 only (`param_set_bool()`).
        unsafe { self.0.get().read_volatile() }
    }
}

impl KernelParam {
    /// An entry for the `__param` section.
    ///
    /// # Safety
    ///
    /// `name` must be NUL-terminated, and `arg` point to what `ops` work on.
    pub(crate) const unsafe fn new(
        name: &'static [u8],
        ops: &'static ParamOps,
        arg: *mut c_void,
    ) -> Self {
        Self(bindings::kernel_param {
            name: name.as_ptr(),
            mod_: this_module::as_ptr(),
            ops: &raw const ops.0,
            perm: 0o644,
            level: -1,
            flags: 0,
            __bindgen_anon_1: bindings::kernel_param__bindgen_ty_1 { arg },
        })
    }
}

/// The bytes of `s`, for a string in the `.modinfo` section.
pub(crate) const fn bytes<const N: usize>(s: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let mut i = 0;
    while i < N {
        bytes[i] = s.as_bytes()[i];
        i += 1;
    }
    bytes
}

/// Declares a module parameter: `param!(NAME = "name": Uint<0, 10> as "uint", 4, "what it is");`
/// makes a `static` of that name and the entries that `modinfo`, `insmod`
/// and sysfs read.
macro_rules! param {
    ($static:ident = $name:literal: $type:ty as $shown:literal, $default:expr, $what:literal) => {
        #[doc = $what]
        static $static: $type = <$type>::new($default);

        const _: () = {
            const TYPE: &str = concat!("parmtype=", $name, ":", $shown, "\0");
            const WHAT: &str = concat!("parm=", $name, ":", $what, "\0");

            static OPS: $crate::net::param::ParamOps = <$type>::OPS;

            #[link_section = ".modinfo"]
            #[used(compiler)]
            static MODINFO_TYPE: [u8; TYPE.len()] = $crate::net::param::bytes(TYPE);

            #[link_section = ".modinfo"]
            #[used(compiler)]
            static MODINFO_WHAT: [u8; WHAT.len()] = $crate::net::param::bytes(WHAT);

            #[link_section = "__param"]
            #[used(compiler)]
            static PARAM: $crate::net::param::KernelParam =
                // SAFETY: The name ends with NUL. `$type` begins with the value that its own
                // `OPS` work on.
                unsafe {
                    $crate::net::param::KernelParam::new(
                        concat!($name, "\0").as_bytes(),
                        &OPS,
                        (&raw const $static).cast_mut().cast(),
                    )
                };
        };
    };
}
pub(crate) use param;
