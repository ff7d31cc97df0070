// SPDX-License-Identifier: GPL-2.0

//! The pure decisions of the kernel modules, compiled for the host from the same files, and their
//! unit and property tests. Debug builds check overflow as Debian's kernel does, so a test that
//! passes over the whole range of a number is also a proof by trial that nothing panics there.

#![no_std]
// What the modules use, the tests use too; what is left unused here is used in the kernel.
#![cfg_attr(not(test), expect(dead_code))]

#[cfg(test)]
extern crate std;

#[path = "../../../rust/dctcp/mod.rs"]
mod dctcp;
#[path = "../../../rust/policy/mod.rs"]
mod policy;
#[path = "../../../rust/policy/text.rs"]
mod text;

#[cfg(test)]
mod alpha;
#[cfg(test)]
mod fraction;
#[cfg(test)]
mod fuzz_dctcp;
#[cfg(test)]
mod fuzz_policy;
#[cfg(test)]
mod kernel_source;
#[cfg(test)]
mod nagle;
#[cfg(test)]
mod window;
