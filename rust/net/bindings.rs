// SPDX-License-Identifier: GPL-2.0

//! What bindgen made of the kernel's TCP, ftrace and namespace headers; nothing is hand-written.
//!
//! Private to `rust/net`: the abstractions beside this file are what modules see.

// bindgen's conversions between integers and bit fields; a lint that older compilers do not know.
#![cfg_attr(not(CONFIG_RUSTC_HAS_UNNECESSARY_TRANSMUTES), allow(unknown_lints))]
#![allow(
    clippy::all,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ptr_cast_constness,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unnecessary_transmutes,
    unreachable_pub,
    unsafe_op_in_unsafe_fn
)]

use kernel::{
    bindings::{
        list_head,
        module,
        seq_file, //
    },
    ffi, //
};

type __kernel_size_t = usize;
type __kernel_ssize_t = isize;
type __kernel_ptrdiff_t = isize;

include!(concat!(
    env!("LOWTAIL_OBJ"),
    "/rust/net/bindings_generated.rs"
));
