// SPDX-License-Identifier: GPL-2.0

//! Tables and tail plots out of the lab's records.

fn main() {}
