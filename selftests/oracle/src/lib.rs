// SPDX-License-Identifier: GPL-2.0

//! `dctcp_floor` against the kernel's own C: the same connection histories, the same windows.
//!
//! Two connections live through the same history. Both are run by core TCP as the kernel source
//! has it (`tcp_ack()`, `tcp_fastretrans_alert()`, `tcp_write_xmit()`, RACK, the timers: cut out of
//! `net/ipv4` by the build, compiled for the host). The one has `tcp_dctcp` for a congestion
//! control, in C; the other `dctcp_floor`, the very source of `rust/`. After every step all numbers
//! of the two sockets are compared.
//!
//! ```text
//!              ┌─► core TCP (C) ─► tcp_dctcp (C)                 ─► snd_cwnd, … ─┐
//!  step ───────┤                                                                ├─ equal?
//!              └─► core TCP (C) ─► rust/net ─► dctcp_floor (Rust) ─► snd_cwnd, … ─┘
//! ```
//!
//! Where stock's window falls below 2 the floor is engaged: ours must be 2 there, and stock's
//! connection then goes on from where ours is.
//!
//! What the two do at different moments on purpose (`docs/window.md`, its end) is taken care of in
//! [`run`], and said there.

pub mod history;
pub mod random;
pub mod run;
pub mod shrink;

/// The C side, as bindgen sees it.
pub mod ffi {
    #![allow(
        clippy::all,
        clippy::undocumented_unsafe_blocks,
        dead_code,
        missing_docs,
        non_camel_case_types,
        non_upper_case_globals,
        unsafe_op_in_unsafe_fn
    )]
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

/// A copy of the module `tcp_dctcp_floor`, as it is or with a difference planted.
#[derive(Clone, Copy)]
pub struct Module {
    load: fn(),
    set_parameter: fn(u32, u32),
    get_private: unsafe fn(*mut ffi::tcp_sock) -> ffi::oracle_private,
    is_judged: unsafe fn(*mut ffi::tcp_sock) -> bool,
    judge: unsafe fn(*mut ffi::tcp_sock),
    raised: fn() -> u64,
}

/// Core TCP and `tcp_dctcp`, as the kernel has them or with a difference planted.
#[derive(Clone, Copy)]
pub struct Core(unsafe extern "C" fn() -> *const ffi::oracle_core);

/// The module as it is in `rust/`.
pub const MODULE: Module = floor::net::view::MODULE;

/// The kernel's C as it is.
pub const CORE: Core = Core(ffi::oracle_core);

include!(concat!(env!("OUT_DIR"), "/variants.rs"));
