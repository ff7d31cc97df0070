// SPDX-License-Identifier: GPL-2.0

//! When an open-loop flow means to send: a list of moments that no reply can delay.
//!
//! The k-th request of a flow is meant for `start + k/rate`, computed from k and not from the
//! moment before, so no rounding adds up. Connections take turns: request k belongs to connection
//! k mod n, which spreads the flow's connections evenly over one interval.

use crate::units::SECOND;

/// How requests are spread over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Arrivals {
    /// One every 1/rate seconds (wrk2's).
    #[default]
    Constant,
    /// A Poisson process of that mean rate, from the fixed seed.
    Poisson,
}

/// The moments of one flow, in order.
#[derive(Clone, Debug)]
pub struct Schedule {
    start: u64,
    /// Thousandths of requests a second.
    rate: u64,
    arrivals: Arrivals,
    random: SplitMix64,
    k: u64,
    next: u64,
}

impl Schedule {
    /// A schedule of `rate` thousandths of requests a second, the first at `start` (ns).
    pub fn new(start: u64, rate: u64, arrivals: Arrivals, seed: u64) -> Self {
        Self {
            start,
            rate,
            arrivals,
            random: SplitMix64(seed),
            k: 0,
            next: start,
        }
    }

    /// When the next request is meant to be sent (ns).
    pub fn peek(&self) -> u64 {
        self.next
    }

    /// Takes the next request: its number and the moment it is meant for (ns).
    pub fn take(&mut self) -> (u64, u64) {
        let taken = (self.k, self.next);
        self.k += 1;
        self.next = match self.arrivals {
            Arrivals::Constant => {
                let offset =
                    u128::from(self.k) * u128::from(1_000 * SECOND) / u128::from(self.rate);
                self.start + offset as u64
            }
            Arrivals::Poisson => {
                let mean = 1_000.0 * SECOND as f64 / self.rate as f64;
                self.next + (-self.random.unit().ln() * mean) as u64
            }
        };
        taken
    }
}

/// Steele, Lea and Flood's SplitMix64: small, good enough, and the same everywhere.
#[derive(Clone, Debug)]
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in (0, 1]: never 0, whose logarithm is not a time.
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_not_drift() {
        // 3 a second: 333 333 333.3 ns apart.
        let mut s = Schedule::new(7, 3_000, Arrivals::Constant, 0);
        for k in 0..3_000_000u64 {
            assert_eq!(s.take().0, k);
        }
        assert_eq!(s.peek(), 7 + 1_000_000 * SECOND);
    }

    #[test]
    fn poisson_keeps_the_mean_and_the_seed() {
        let run = |seed| {
            let mut s = Schedule::new(0, 1_000_000, Arrivals::Poisson, seed);
            (0..100_000).for_each(|_| _ = s.take());
            s.peek()
        };
        let end = run(1);
        assert!((99 * SECOND..101 * SECOND).contains(&end), "{end}");
        assert_eq!(end, run(1));
        assert_ne!(end, run(2));
    }
}
