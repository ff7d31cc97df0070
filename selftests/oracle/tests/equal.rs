// SPDX-License-Identifier: GPL-2.0

//! `dctcp_floor` and stock's `tcp_dctcp` have the same windows: in random histories, and in those
//! that once showed a difference.

use std::{env, fs, path::Path};

use oracle::{
    history::History,
    random::{self, Random},
    run::{tell_panics, Pair, Passed},
    shrink::shrink,
    CORE, MODULE, PLANTED_IN_RUST,
};

/// A short `make oracle`; `STEPS` and `SEED` as there.
#[test]
fn random_histories() {
    let number = |name, default| match env::var(name) {
        Ok(value) if !value.is_empty() => value.parse().expect(name),
        _ => default,
    };
    let (wanted, seed) = (number("STEPS", 2_000_000), number("SEED", 1));
    println!("STEPS={wanted} SEED={seed}");

    tell_panics();
    let mut pair = Pair::new(CORE, MODULE);
    let mut passed = Passed::default();
    let mut random = Random::new(seed);
    while passed.steps < wanted {
        let history = random::history(&mut random, 800);
        match pair.run(&history) {
            Ok(this) => passed.add(&this),
            Err(_) => {
                let short = shrink(&mut pair, &history);
                let difference = pair.run(&short).expect_err("it still differs");
                panic!("SEED={seed}: {}\n{short}", difference.what);
            }
        }
    }
    println!("{passed:?}");

    // A run that did not get everywhere has shown nothing of the rest.
    assert!(passed.floors > 1000, "the floor");
    assert!(passed.states.iter().all(|n| *n > 1000), "congestion states");
    assert!(passed.undone > 100, "undo");
    assert!(passed.timers > 1000, "timers");
    assert!(passed.fallback > 1000, "connections without ECN");
    assert!(passed.decayed > 100, "idle time and underuse");
}

/// A packet's two sequence numbers side by side are no pointer, whatever they look like.
///
/// One run in a hundred of `random_histories` once differed from the others: it was the one whose
/// memory lay where such a pair pointed.
#[test]
fn copies_numbers() {
    // SAFETY: A plain C function.
    assert!(unsafe { oracle::ffi::oracle_copies_numbers() });
}

/// Each history that was kept shows no difference any more, and still shows the one that its line
/// `# shows:` names where that is planted.
#[test]
fn kept_histories() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("histories");
    let mut n = 0;
    for entry in fs::read_dir(folder).expect("histories/ is there") {
        let path = entry.expect("it can be read").path();
        let name = path.display();
        let text = fs::read_to_string(&path).expect("it can be read");
        let history = History::parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(!history.steps.is_empty(), "{name}: no steps");
        let again = History::parse(&history.to_string()).expect("what was written can be read");
        assert_eq!(history, again);
        if let Err(difference) = Pair::new(CORE, MODULE).run(&history) {
            panic!("{name}: {}", difference.what);
        }
        if let Some(shows) = text.lines().find_map(|l| l.strip_prefix("# shows: ")) {
            let planted = PLANTED_IN_RUST.iter().find(|(what, _)| *what == shows);
            let (_, module) = planted.unwrap_or_else(|| panic!("{name}: nobody plants that"));
            let difference = Pair::new(CORE, *module).run(&history).expect_err(shows);
            println!("{shows}: {}", difference.what);
        }
        n += 1;
    }
    assert!(n > 0, "no history was kept");
}
