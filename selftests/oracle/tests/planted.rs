// SPDX-License-Identifier: GPL-2.0

//! The test of the test: differences planted into copies of the kernel's C and of the module's Rust
//! are found, each of them.

use oracle::{
    random::{self, Random},
    run::Pair,
    Core, Module, CORE, MODULE, PLANTED_IN_C, PLANTED_IN_RUST,
};

/// Steps within which a planted difference has to be found.
const STEPS: u64 = 10_000_000;

/// Runs random histories until a difference is found; says how many steps that took.
fn find(core: Core, module: Module) -> Result<(u64, String), u64> {
    let mut pair = Pair::new(core, module);
    let mut random = Random::new(1);
    let mut steps = 0;
    while steps < STEPS {
        match pair.run(&random::history(&mut random, 800)) {
            Ok(passed) => steps += passed.steps,
            Err(difference) => return Ok((steps, difference.what)),
        }
    }
    Err(steps)
}

fn all<T: Copy>(planted: &[(&str, T)], sides: fn(T) -> (Core, Module)) {
    let mut missed = Vec::new();
    for (what, side) in planted {
        let (core, module) = sides(*side);
        match find(core, module) {
            Ok((steps, difference)) => {
                let difference: String = difference.chars().take(90).collect();
                println!("found after {steps} steps: {what}: {difference}");
            }
            Err(steps) => {
                println!("NOT FOUND in {steps} steps: {what}");
                missed.push(*what);
            }
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
    assert!(!planted.is_empty());
}

#[test]
fn differences_in_c_are_found() {
    all(PLANTED_IN_C, |core| (core, MODULE));
}

#[test]
fn differences_in_rust_are_found() {
    all(PLANTED_IN_RUST, |module| (CORE, module));
}
