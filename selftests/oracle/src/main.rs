// SPDX-License-Identifier: GPL-2.0

//! `make oracle`: random histories until `STEPS` steps were compared, from `SEED` on.
//!
//! A difference is shrunk, printed, written to `selftests/oracle/histories/`, and ends the run with
//! status 1.

use std::{env, fs, path::PathBuf, process::ExitCode, time::SystemTime};

use oracle::{
    random::{self, Random},
    run::{tell_panics, Pair, Passed},
    shrink::shrink,
    CORE, MODULE,
};

/// Steps of a history, at most.
const LENGTH: u32 = 800;

fn number(name: &str) -> Option<u64> {
    let value = env::var(name).ok().filter(|v| !v.is_empty())?;
    Some(
        value
            .parse()
            .unwrap_or_else(|e| panic!("{name}={value}: {e}")),
    )
}

fn main() -> ExitCode {
    let wanted = number("STEPS").unwrap_or(10_000_000);
    let seed = number("SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.map_or(1, |d| d.as_secs())
    });
    println!("oracle: STEPS={wanted} SEED={seed}");

    tell_panics();
    let mut pair = Pair::new(CORE, MODULE);
    let mut passed = Passed::default();
    let mut random = Random::new(seed);
    let mut histories = 0u64;
    while passed.steps < wanted {
        let history = random::history(&mut random, LENGTH);
        match pair.run(&history) {
            Ok(this) => passed.add(&this),
            Err(_) => {
                let short = shrink(&mut pair, &history);
                let difference = pair.run(&short).expect_err("it still differs");
                let name = format!("seed{seed}-{histories}.txt");
                let text = format!("# SEED={seed}: {}\n{short}", difference.what);
                print!("{text}");
                let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("histories");
                match fs::write(folder.join(&name), text) {
                    Ok(()) => println!("oracle: kept as selftests/oracle/histories/{name}"),
                    Err(e) => println!("oracle: not kept: {e}"),
                }
                println!("oracle: 1 difference after {} steps", passed.steps);
                return ExitCode::FAILURE;
            }
        }
        histories += 1;
    }
    println!("oracle: {histories} histories: {passed:?}");
    println!("oracle: 0 differences in {} steps", passed.steps);
    ExitCode::SUCCESS
}
