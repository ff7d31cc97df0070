// SPDX-License-Identifier: GPL-2.0

//! The window after idle time and while the application does not fill it.
//!
//! RFC 5681 §4.1 and RFC 2861; `tcp_cwnd_restart()`, `tcp_slow_start_after_idle_check()` and
//! `tcp_cwnd_application_limited()` of `net/ipv4/tcp_output.c`. Core TCP stops doing this for a
//! congestion control that has `cong_control`.

/// Nothing was sent for `idle` jiffies, which is too long for the window to stand: more than `rto`.
pub(crate) fn is_idle(idle: u32, rto: u32) -> bool {
    idle > rto
}

/// Window and threshold, in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    /// Congestion window.
    pub(crate) cwnd: u32,
    /// Slow-start threshold.
    pub(crate) ssthresh: u32,
    /// CA state is CWR or Recovery: the threshold has just been set, and stays.
    pub(crate) reducing: bool,
}

impl Windows {
    /// The threshold that remembers three quarters of a window which is about to be given up
    /// (`tcp_current_ssthresh()`).
    fn remembered_ssthresh(self) -> u32 {
        if self.reducing {
            self.ssthresh
        } else {
            self.ssthresh
                .max((self.cwnd >> 1).wrapping_add(self.cwnd >> 2))
        }
    }

    /// After `idle` jiffies without a transmission, [more than](is_idle) `rto`: cwnd is halved for
    /// every `rto` jiffies beyond the first, not below `restart` packets (the initial window).
    pub(crate) fn after_idle(self, idle: u32, rto: u32, restart: u32) -> Self {
        let restart = restart.min(self.cwnd);
        let mut cwnd = self.cwnd;
        // Signed, as in C: an idle time of more than 2³¹ jiffies halves nothing.
        let mut left = idle.wrapping_sub(rto) as i32;
        // At most 32 rounds: cwnd reaches 0, and `restart` is not below it.
        while left > 0 && cwnd > restart {
            cwnd >>= 1;
            left = left.wrapping_sub(rto as i32);
        }
        Self {
            cwnd: cwnd.max(restart),
            ssthresh: self.remembered_ssthresh(),
            ..self
        }
    }

    /// After an RTO during which at most `used` packets were out: cwnd moves half-way to what was
    /// used, or to the initial window `init` where that is more. `None` when the window was used.
    pub(crate) fn after_underuse(self, used: u32, init: u32) -> Option<Self> {
        let used = used.max(init);
        if used >= self.cwnd {
            return None;
        }
        Some(Self {
            // No overflow: the mean of two numbers lies between them.
            cwnd: used + ((self.cwnd - used) >> 1),
            ssthresh: self.remembered_ssthresh(),
            ..self
        })
    }
}
