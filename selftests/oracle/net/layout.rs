// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `rust/net/layout.rs`: the kernel's layouts are not those of the host's headers.
