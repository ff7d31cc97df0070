// SPDX-License-Identifier: GPL-2.0

//! Fuzzing by proptest: a property over random inputs, by a seed that is always printed.
//!
//! A target is a test named `fuzz_*` that calls [`check`]. In `make host-test` it runs a few
//! thousand cases of seed 1; `make fuzz MINUTES=…` runs seed after seed until its time is over. An
//! input that fails is shrunk, and its seed is written to `corpus/TARGET.txt` of the target's
//! crate, with what it shrank to; every later run of the target begins with the seeds in that file.
//!
//! Not cargo-fuzz: its sanitizer coverage needs a nightly rustc, and the lab builds with Debian's.

use std::env;
use std::fmt::Debug;
use std::io::{IsTerminal, Write, stderr};
use std::path::Path;
use std::time::{Duration, Instant};

use proptest::strategy::Strategy;
use proptest::test_runner::{
    Config, FileFailurePersistence, RngAlgorithm, TestCaseResult, TestRng, TestRunner,
};

/// Where a target of the calling crate keeps what failed: `corpus!("name")`.
#[macro_export]
macro_rules! corpus {
    ($name:literal) => {
        concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/", $name, ".txt")
    };
}

/// A number of the environment; `None` where it is not set or empty.
fn number(name: &str) -> Option<u64> {
    let value = env::var(name).ok().filter(|v| !v.is_empty())?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}={value}: give a whole number")))
}

/// Says a line on the terminal or in the log; the test harness keeps back what `println!` says.
fn say(text: &str) {
    _ = stderr().write_all(text.as_bytes());
}

/// Runs `property` on the inputs kept in `corpus`, then on `cases` inputs made by `strategy` from
/// the seed `FUZZ_SEED` [1]; with `FUZZ_SECONDS` on seed after seed for that long.
///
/// # Panics
///
/// When the property does not hold: with the seed and the shortest input found.
pub fn check<S>(
    corpus: &'static str,
    cases: u32,
    strategy: S,
    property: impl Fn(S::Value) -> TestCaseResult,
) where
    S: Strategy<Value: Debug>,
{
    let name = Path::new(corpus).file_stem().unwrap_or_default();
    let name = name.to_string_lossy();
    let first = number("FUZZ_SEED").unwrap_or(1);
    let limit = number("FUZZ_SECONDS").map(Duration::from_secs);
    let (began, mut seed, mut said) = (Instant::now(), first, Duration::ZERO);
    loop {
        let config = Config {
            cases,
            // A file is wanted by proptest before it looks for one; ours is named below.
            source_file: Some(file!()),
            failure_persistence: Some(Box::new(FileFailurePersistence::Direct(corpus))),
            max_shrink_iters: 100_000,
            ..Config::default()
        };
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        if let Err(error) = TestRunner::new_with_rng(config, rng).run(&strategy, &property) {
            panic!("fuzz {name}: FUZZ_SEED={seed}: {error}\nkept in {corpus}: commit it");
        }
        seed = seed.wrapping_add(1);
        let spent = began.elapsed();
        if limit.is_none_or(|limit| spent >= limit) {
            break;
        }
        if stderr().is_terminal() && spent - said > Duration::from_millis(500) {
            said = spent;
            say(&format!(
                "\rfuzz {name}: seed {seed}, {} s",
                spent.as_secs()
            ));
        }
    }
    let (last, rounds) = (seed.wrapping_sub(1), seed.wrapping_sub(first));
    let clear = if stderr().is_terminal() && limit.is_some() {
        "\r\x1b[K"
    } else {
        ""
    };
    say(&format!(
        "{clear}fuzz {name}: FUZZ_SEED={first} to {last}, {} cases\n",
        rounds.saturating_mul(u64::from(cases))
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::RefCell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// One seed, one sequence of inputs.
    #[test]
    fn a_seed_repeats() {
        let run = || {
            let seen = RefCell::new(Vec::new());
            check(corpus!("a_seed_repeats"), 20, any::<u64>(), |n| {
                seen.borrow_mut().push(n);
                Ok(())
            });
            seen.into_inner()
        };
        let one = run();
        assert!(one.len() >= 20 && one == run());
    }

    /// What fails is shrunk, kept, and comes first the next time.
    #[test]
    fn what_fails_is_kept() {
        let path = env::temp_dir().join(format!("lowtail-fuzz-{}.txt", std::process::id()));
        let kept: &'static str = String::leak(path.to_string_lossy().into_owned());
        let failed = catch_unwind(AssertUnwindSafe(|| {
            check(kept, 100, any::<u32>(), |n| {
                prop_assert!(n < 1000, "too large");
                Ok(())
            });
        }));
        let error = *failed.unwrap_err().downcast::<String>().unwrap();
        assert!(
            error.contains("too large") && error.contains("minimal failing input: 1000"),
            "{error}"
        );
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("shrinks to") && text.contains("1000"),
            "{text}"
        );

        let first = RefCell::new(None);
        check(kept, 1, any::<u32>(), |n| {
            first.borrow_mut().get_or_insert(n);
            Ok(())
        });
        std::fs::remove_file(&path).unwrap();
        assert!(first.into_inner().unwrap() >= 1000);
    }
}
