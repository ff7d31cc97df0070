// SPDX-License-Identifier: GPL-2.0

//! What a flow's measurement consists of: histograms of times and counts of events.

use hdrhistogram::Histogram;

use crate::tcp_info::Info;
use crate::units::SECOND;

/// The percentiles that are reported, with the names they have in the records.
pub const PERCENTILES: [(&str, f64); 7] = [
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
    ("p99.999", 0.99999),
];

/// The longest time a histogram tells apart (ns): an hour.
const LONGEST: u64 = 3_600 * SECOND;

/// A histogram of times with three significant digits, and its exact extremes.
#[derive(Clone, Debug)]
pub struct Times {
    histogram: Histogram<u64>,
    min: u64,
    max: u64,
}

impl Default for Times {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are in order");
        Self {
            histogram,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl Times {
    /// Adds a time (ns).
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns.max(1));
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
    }

    /// How many times there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The time (ns) that a fraction of `quantile` does not exceed.
    pub fn quantile(&self, quantile: f64) -> u64 {
        // A bucket's upper end may lie above the greatest time that is in it.
        self.histogram
            .value_at_quantile(quantile)
            .clamp(self.min(), self.max)
    }

    /// The shortest time (ns).
    pub fn min(&self) -> u64 {
        if self.count() == 0 { 0 } else { self.min }
    }

    /// The longest time (ns).
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The underlying histogram (ns).
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// Whether at least one time lies beyond the quantile, so that it says more than `max` does.
    pub fn resolves(&self, quantile: f64) -> bool {
        self.count() as f64 * (1.0 - quantile) >= 1.0 - 1e-9
    }
}

/// What one end's tcp_info adds up to over a flow's connections.
#[derive(Clone, Debug, Default)]
pub struct TcpCounts {
    /// Segments retransmitted.
    pub retrans: u64,
    /// Retransmission timeouts; `None` where the kernel does not count them (before 6.7).
    pub rto: Option<u64>,
    /// Packets that arrived CE-marked at the other end; `None` before 4.18.
    pub ce: Option<u64>,
    /// The smallest congestion window seen (packets); `None` when nobody looked.
    pub cwnd_min: Option<u32>,
}

impl TcpCounts {
    /// Adds one connection's counts from `from` to `to`.
    pub fn add(&mut self, from: &Info, to: &Info) {
        let step = |from: Option<u32>, to: Option<u32>| {
            // Counters wrap.
            Some(u64::from(to?.wrapping_sub(from?)))
        };
        let sum =
            |sum: Option<u64>, step: Option<u64>| step.map_or(sum, |n| Some(sum.unwrap_or(0) + n));
        self.retrans += u64::from(to.retrans.wrapping_sub(from.retrans));
        self.rto = sum(self.rto, step(from.rto, to.rto));
        self.ce = sum(self.ce, step(from.ce, to.ce));
    }

    /// Notes a congestion window (packets); 0 is none.
    pub fn cwnd(&mut self, cwnd: u32) {
        if cwnd > 0 && cwnd != u32::MAX {
            self.cwnd_min = Some(self.cwnd_min.map_or(cwnd, |min| min.min(cwnd)));
        }
    }
}

/// One flow's measurement.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// From the moment a request was meant to be sent to the last byte of its reply.
    pub latency: Times,
    /// From the first byte that was sent to the last byte of the reply.
    pub service: Times,
    /// From the moment a barrier's round was meant to begin to its last reply.
    pub rounds: Times,
    /// Requests that were meant to be sent in the measured time.
    pub requests: u64,
    /// Requests of those without a reply at the end; each is in `latency` with the time that it had
    /// waited by then, so that the tail does not get shorter by what never came.
    pub unfinished: u64,
    /// Replies that arrived in the measured time.
    pub replies: u64,
    /// Bytes of payload, both ways, of those replies and their requests; of a stream, the bytes
    /// the peer acknowledged in the measured time.
    pub bytes: u64,
    /// Jain's index of the connections' shares of `bytes`; `None` where nothing was carried.
    pub fairness: Option<f64>,
    /// Connections that broke.
    pub errors: u64,
    /// Why the first of them did.
    pub first_error: Option<String>,
    /// This end, in the measured time and until the last reply.
    pub tcp: TcpCounts,
    /// The server's end, likewise.
    pub peer: TcpCounts,
}

/// Jain's index of fairness: 1 when all shares are equal, 1/n when one has everything.
pub fn fairness(shares: impl Iterator<Item = u64>) -> Option<f64> {
    let (n, sum, squares) = shares.fold((0.0, 0.0, 0.0), |(n, sum, squares), share| {
        let share = share as f64;
        (n + 1.0, sum + share, squares + share * share)
    });
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index() {
        let of = |shares: &[u64]| fairness(shares.iter().copied());
        assert_eq!(of(&[7, 7, 7]), Some(1.0));
        assert_eq!(of(&[7, 0, 0, 0]), Some(0.25));
        assert_eq!(of(&[1, 3]), Some(0.8));
        assert_eq!(of(&[0, 0]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn quantiles_stay_between_the_extremes() {
        let mut times = Times::default();
        assert_eq!((times.quantile(0.99), times.min(), times.max()), (0, 0, 0));
        times.record(1_000_003);
        assert_eq!(times.quantile(0.5), 1_000_003);
        (1..1000u64).for_each(|n| times.record(n * 1000));
        assert_eq!(times.max(), 1_000_003);
        let p50 = times.quantile(0.5);
        assert!((500_000..=501_000).contains(&p50), "{p50}");
        assert!(times.resolves(0.999) && !times.resolves(0.9999));
        times.record(u64::MAX);
        assert_eq!(times.max(), u64::MAX);
    }

    #[test]
    fn counts_between_two_looks() {
        let from = Info {
            retrans: u32::MAX,
            rto: None,
            ce: Some(5),
            ..Info::default()
        };
        let to = Info {
            retrans: 1,
            rto: None,
            ce: Some(9),
            ..Info::default()
        };
        let mut counts = TcpCounts::default();
        counts.add(&from, &to);
        counts.add(&from, &to);
        assert_eq!((counts.retrans, counts.rto, counts.ce), (4, None, Some(8)));
        counts.cwnd(10);
        counts.cwnd(2);
        counts.cwnd(0);
        assert_eq!(counts.cwnd_min, Some(2));
    }
}
