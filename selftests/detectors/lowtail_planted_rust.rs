// SPDX-License-Identifier: GPL-2.0

//! The same for Rust: `insmod lowtail_planted_rust.ko fault=N` commits one fault, and then fails
//! with `EINTR`, so that the next can be asked for.
//!
//! | N | fault | who finds it |
//! |---|---|---|
//! | 1 | memory is read after it was freed | KASAN |
//! | 2 | an allocation that may sleep while a spinlock is held | DEBUG_ATOMIC_SLEEP |
//! | 3 | memory is forgotten | kmemleak |
//! | 4 | an addition overflows | RUST_OVERFLOW_CHECKS: insmod is killed, and the module stays half loaded |

use core::hint::black_box;

use kernel::{
    new_spinlock,
    prelude::*, //
};

#[path = "../faults/net/dangling.rs"]
mod dangling;

module! {
    type: Planted,
    name: "lowtail_planted_rust",
    authors: ["The lowtail developers"],
    description: "Test-only: faults in Rust for a debug kernel's detectors",
    license: "GPL v2",
    params: {
        fault: u32 {
            default: 0,
            description: "the fault to commit",
        },
    },
}

fn sleep_under_spinlock() -> Result {
    let spin = KBox::pin_init(new_spinlock!(0u32), GFP_KERNEL)?;
    let held = spin.lock();
    let allocated = KBox::new(*held, GFP_KERNEL);
    drop(held);
    allocated.map(drop)?;
    Ok(())
}

/// Several, since the address of the last may stay in a register or on a stack.
fn leak() -> Result {
    for _ in 0..16 {
        black_box(KBox::leak(KBox::new([0u8; 77], GFP_KERNEL)?));
    }
    Ok(())
}

struct Planted;

impl kernel::Module for Planted {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        match module_parameters::fault.value() {
            1 => black_box(dangling::read_after_free()).map(drop)?,
            2 => sleep_under_spinlock()?,
            3 => leak()?,
            4 => drop(black_box(black_box(u32::MAX) + black_box(1))),
            _ => return Err(EINVAL),
        }
        Err(EINTR)
    }
}
