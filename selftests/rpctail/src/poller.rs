// SPDX-License-Identifier: GPL-2.0

//! The clock, the timer and epoll: everything that can put the thread to sleep.
//!
//! Deadlines go through one absolute timerfd and not through epoll's timeout: select, poll and
//! epoll round theirs by 0.1 % (`select_estimate_accuracy()`), a timerfd does not. The timer is
//! watched edge-triggered, so an expiry costs no read.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::time::{self, ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags};

use crate::units::SECOND;

/// The timer's token; no connection has it.
const TIMER: u64 = u64::MAX;

/// How many events one wait takes out.
const BATCH: usize = 64;

/// `CLOCK_MONOTONIC` in nanoseconds.
pub fn now() -> u64 {
    let t = time::clock_gettime(ClockId::Monotonic);
    // Monotonic time is never negative.
    t.tv_sec as u64 * SECOND + t.tv_nsec as u64
}

/// What happened to a descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// The number it was registered with.
    pub token: u64,
    /// There is something to read, or the end of it, or an error.
    pub readable: bool,
    /// There is room to write.
    pub writable: bool,
}

/// An epoll instance with a timer.
pub struct Poller {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// When the timer fires, in ns of [`now`]; 0 when it is not armed.
    armed: u64,
    events: Vec<epoll::Event>,
}

/// What a descriptor is watched for: always reading, writing when asked.
fn interest(writing: bool) -> epoll::EventFlags {
    if writing {
        epoll::EventFlags::IN | epoll::EventFlags::OUT
    } else {
        epoll::EventFlags::IN
    }
}

impl Poller {
    /// Makes the epoll instance and its timer, and asks for timers without slack.
    pub fn new() -> io::Result<Self> {
        // PR_SET_TIMERSLACK: 1 ns instead of 50 µs. Only epoll's own timeouts feel it.
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = time::timerfd_create(TimerfdClockId::Monotonic, flags)?;
        epoll::add(
            &epoll,
            &timer,
            epoll::EventData::new_u64(TIMER),
            epoll::EventFlags::IN | epoll::EventFlags::ET,
        )?;
        Ok(Self {
            epoll,
            timer,
            armed: 0,
            events: Vec::with_capacity(BATCH),
        })
    }

    /// Watches a descriptor, level-triggered.
    pub fn add(&self, fd: impl AsFd, token: u64, writing: bool) -> io::Result<()> {
        Ok(epoll::add(
            &self.epoll,
            fd,
            epoll::EventData::new_u64(token),
            interest(writing),
        )?)
    }

    /// Changes whether a watched descriptor is watched for writing too.
    pub fn modify(&self, fd: impl AsFd, token: u64, writing: bool) -> io::Result<()> {
        Ok(epoll::modify(
            &self.epoll,
            fd,
            epoll::EventData::new_u64(token),
            interest(writing),
        )?)
    }

    /// Forgets a descriptor.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, fd)?)
    }

    /// Sleeps until a descriptor is ready or `deadline` (ns of [`now`]) has come, and puts what is
    /// ready into `out`. Without a deadline it sleeps as long as it takes.
    pub fn wait(&mut self, deadline: Option<u64>, out: &mut Vec<Ready>) -> io::Result<()> {
        out.clear();
        let mut timeout = None;
        if let Some(at) = deadline {
            if at <= now() {
                timeout = Some(Timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                });
            } else if at != self.armed {
                let it_value = Timespec {
                    tv_sec: (at / SECOND) as i64,
                    tv_nsec: (at % SECOND) as i64,
                };
                let it_interval = Timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                };
                let spec = Itimerspec {
                    it_interval,
                    it_value,
                };
                time::timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &spec)?;
                self.armed = at;
            }
        }
        self.events.clear();
        match epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.events),
            timeout.as_ref(),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &self.events {
            // The fields of a packed struct have to be copied out.
            let (data, flags) = (event.data, event.flags);
            if data.u64() == TIMER {
                self.armed = 0;
                continue;
            }
            let broken = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
            out.push(Ready {
                token: data.u64(),
                readable: broken || flags.contains(epoll::EventFlags::IN),
                writable: flags.contains(epoll::EventFlags::OUT),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_until_the_deadline_and_no_less() {
        let mut poller = Poller::new().unwrap();
        let mut out = Vec::new();
        for ns in [50_000, 3_000_000] {
            let at = now() + ns;
            while now() < at {
                poller.wait(Some(at), &mut out).unwrap();
                assert!(out.is_empty());
            }
            // A deadline that has passed does not sleep at all.
            poller.wait(Some(at), &mut out).unwrap();
        }
    }
}
