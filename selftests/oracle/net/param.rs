// SPDX-License-Identifier: GPL-2.0

//! Stand-in for the module parameters of `rust/net/param.rs`: the values, without sysfs.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// An unsigned parameter within `MIN..=MAX`.
pub(crate) struct Uint<const MIN: u32, const MAX: u32>(AtomicU32);

impl<const MIN: u32, const MAX: u32> Uint<MIN, MAX> {
    pub(crate) const fn new(default: u32) -> Self {
        assert!(MIN <= default && default <= MAX);
        Self(AtomicU32::new(default))
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// As a write to sysfs, which refuses what is out of range.
    pub(crate) fn set(&self, value: u32) {
        if (MIN..=MAX).contains(&value) {
            self.0.store(value, Relaxed);
        }
    }
}

/// A parameter that is `Y` or `N`.
pub(crate) struct Bool(AtomicBool);

impl Bool {
    pub(crate) const fn new(default: bool) -> Self {
        Self(AtomicBool::new(default))
    }

    pub(crate) fn get(&self) -> bool {
        self.0.load(Relaxed)
    }

    pub(crate) fn set(&self, value: bool) {
        self.0.store(value, Relaxed);
    }
}

macro_rules! param {
    ($static:ident = $name:literal: $type:ty as $shown:literal, $default:expr, $what:literal) => {
        static $static: $type = <$type>::new($default);
    };
}
pub(crate) use param;
