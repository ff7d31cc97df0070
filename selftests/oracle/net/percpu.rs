// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `rust/net/percpu.rs`, of which nothing is used here.
