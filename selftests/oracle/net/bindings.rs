// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `rust/net/bindings.rs`: what bindgen made of the oracle's headers.

use kernel::ffi;

include!(concat!(env!("OUT_DIR"), "/bindings_module.rs"));
