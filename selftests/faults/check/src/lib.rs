// SPDX-License-Identifier: GPL-2.0

//! The pure decisions of the test-only kernel modules, compiled for the host from the same files,
//! and their unit tests. Debug builds check overflow as Debian's kernel does.

#![no_std]
// What the modules use, the tests use too; what is left unused here is used in the kernel.
#![cfg_attr(not(test), expect(dead_code))]

#[cfg(test)]
extern crate std;

#[cfg_attr(test, allow(dead_code))]
#[path = "../../../../rust/dctcp/mod.rs"]
mod dctcp;
#[path = "../../fault/mod.rs"]
mod fault;
#[path = "../../prr_2018.rs"]
mod prr_2018;

#[cfg(test)]
mod kernel_source;
#[cfg(test)]
mod plan;
#[cfg(test)]
mod segment;
#[cfg(test)]
mod window;
