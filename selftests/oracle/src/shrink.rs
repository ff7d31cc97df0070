// SPDX-License-Identifier: GPL-2.0

//! Makes a history that shows a difference as short and as simple as it still shows one.

use crate::{history::History, history::DEFAULTS, run::Pair};

/// The shortest history found that still shows a difference; `history` must show one.
pub fn shrink(pair: &mut Pair, history: &History) -> History {
    let mut best = history.clone();
    let mut fails = |tried: &mut History| match pair.run(tried) {
        Ok(_) => false,
        Err(difference) => {
            // Nothing after the difference matters.
            tried.steps.truncate(difference.step.map_or(0, |n| n + 1));
            true
        }
    };
    fails(&mut best);

    loop {
        let before = best.clone();

        // Leave out steps, many at once at first.
        let mut size = best.steps.len().div_ceil(2).max(1);
        loop {
            let mut at = 0;
            while at < best.steps.len() {
                let mut tried = best.clone();
                let end = (at + size).min(tried.steps.len());
                tried.steps.drain(at..end);
                if fails(&mut tried) {
                    best = tried;
                } else {
                    at += size;
                }
            }
            if size == 1 {
                break;
            }
            size = size.div_ceil(2);
        }

        // Make numbers smaller.
        for n in 0..best.steps.len() {
            for which in 0..3 {
                for smaller in [|_| 0, |v: u32| v / 2, |v: u32| v.saturating_sub(1)] {
                    let Some(step) = best.steps.get(n) else { break };
                    let mut step = *step;
                    let number = match which {
                        0 => &mut step.a,
                        1 => &mut step.b,
                        _ => &mut step.c,
                    };
                    if smaller(*number) == *number {
                        continue;
                    }
                    *number = smaller(*number);
                    let mut tried = best.clone();
                    tried.steps[n] = step;
                    if fails(&mut tried) {
                        best = tried;
                    }
                }
            }
        }

        // Take defaults.
        for (which, default) in DEFAULTS.into_iter().enumerate() {
            let mut tried = best.clone();
            tried.parameters[which] = default;
            if tried != best && fails(&mut tried) {
                best = tried;
            }
        }
        let ordinary: [fn(&mut History); 9] = [
            |h| h.late = 0,
            |h| h.before_wrap = 1 << 20,
            |h| h.start.isn = 0,
            |h| h.start.rcv_isn = 0,
            |h| h.start.delivered = 0,
            |h| h.start.syns = 0,
            |h| h.start.initcwnd = 0,
            |h| h.start.clamp = u32::MAX >> 1,
            |h| h.start.flags &= 1 | 4,
        ];
        for change in ordinary {
            let mut tried = best.clone();
            change(&mut tried);
            if tried != best && fails(&mut tried) {
                best = tried;
            }
        }
        if best == before {
            return best;
        }
    }
}
