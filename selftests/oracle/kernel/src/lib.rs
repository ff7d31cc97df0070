// SPDX-License-Identifier: GPL-2.0

//! A stand-in for the kernel crate: as much of it as the source of `tcp_dctcp_floor` uses, for the
//! host. Names and types are the kernel's, since the module's source is compiled unchanged.

#![no_std]

/// `kernel::ffi`: C's types as the kernel has them, where `char` has no sign.
#[allow(non_camel_case_types)]
pub mod ffi {
    pub use core::ffi::{
        c_int, c_longlong, c_schar, c_short, c_uchar, c_uint, c_ulonglong, c_ushort, c_void,
    };
    /// `char`.
    pub type c_char = u8;
    /// `long`.
    pub type c_long = isize;
    /// `unsigned long`.
    pub type c_ulong = usize;
}

/// `kernel::error`.
pub mod error {
    use super::ffi::c_int;

    /// An errno.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Error(c_int);

    /// The kernel's `Result`.
    pub type Result<T = (), E = Error> = core::result::Result<T, E>;

    /// What a callback that an algorithm does not have says.
    pub const VTABLE_DEFAULT_ERROR: &str = "this function must not be called";

    /// Turns C's return value into a result.
    ///
    /// # Errors
    ///
    /// Any negative value.
    pub fn to_result(err: c_int) -> Result {
        if err < 0 { Err(Error(err)) } else { Ok(()) }
    }
}

/// `kernel::types`.
pub mod types {
    use core::cell::UnsafeCell;

    /// A value that C owns.
    #[repr(transparent)]
    pub struct Opaque<T>(UnsafeCell<T>);

    impl<T> Opaque<T> {
        /// Wraps `value`.
        pub const fn new(value: T) -> Self {
            Self(UnsafeCell::new(value))
        }

        /// The value, for C.
        pub const fn get(&self) -> *mut T {
            self.0.get()
        }
    }
}

/// A kernel module.
pub trait Module: Sized + Send {
    /// Called when the module is loaded.
    ///
    /// # Errors
    ///
    /// Whatever keeps the module from loading.
    fn init(module: &'static ThisModule) -> error::Result<Self>;
}

/// `THIS_MODULE`.
pub struct ThisModule;

/// The one there is.
pub static THIS_MODULE: ThisModule = ThisModule;

/// What is initialised by all bytes zero.
///
/// # Safety
///
/// All bytes zero must be a value of the type.
pub unsafe trait Zeroable {}

/// The crate `pin_init`.
pub mod pin_init {
    /// A value whose bytes are zero.
    pub const fn zeroed<T: super::Zeroable>() -> T {
        // SAFETY: By the contract of `Zeroable`.
        unsafe { core::mem::zeroed() }
    }
}

/// `module!`: a function `load()`, which does what `insmod` does.
#[macro_export]
macro_rules! module {
    (type: $type:ty, $($rest:tt)*) => {
        /// Loads the module, for good.
        pub(crate) fn load() {
            let loaded = <$type as $crate::Module>::init(&$crate::THIS_MODULE);
            core::mem::forget(loaded.expect("the module loads"));
        }
    };
}

/// A callback that must not be called; the kernel's stops the build where it could be.
#[macro_export]
macro_rules! build_error {
    ($what:expr) => {
        panic!("{}", $what)
    };
}

/// Log lines; on the host they are not wanted.
#[macro_export]
macro_rules! log_nothing {
    ($($argument:tt)*) => {{
        let _ = format_args!($($argument)*);
    }};
}

/// `kernel::prelude`.
pub mod prelude {
    pub use super::{
        ThisModule, Zeroable, build_error,
        error::{Error, Result},
        ffi::{
            c_char, c_int, c_long, c_longlong, c_short, c_uchar, c_uint, c_ulong, c_ulonglong,
            c_ushort, c_void,
        },
        log_nothing as pr_err, log_nothing as pr_info, module, pin_init,
    };
    pub use core::{
        ffi::CStr,
        mem::{align_of, size_of},
        pin::Pin,
    };
    pub use oracle_macros::{Zeroable, vtable};
}
