// SPDX-License-Identifier: GPL-2.0

//! Random histories. Each has a character of its own (how long a round trip is, how much is lost
//! and marked, how greedy the application is), so that the steps of one go together.

use crate::{
    ffi,
    history::{History, Step, DEFAULTS},
};

/// SplitMix64: a seed is all its state.
pub struct Random(u64);

impl Random {
    /// Numbers that follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u32) -> u32 {
        ((u64::from(self.next() as u32) * u64::from(n)) >> 32) as u32
    }

    /// A number from `low` to `high`.
    fn within(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }

    /// True once in `n` times.
    fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    /// Any of `choices`.
    fn any(&mut self, choices: &[u32]) -> u32 {
        choices[self.below(choices.len() as u32) as usize]
    }

    /// A number of any size: small ones as often as large ones.
    fn log(&mut self, bits: u32) -> u32 {
        let bits = self.below(bits + 1);
        (self.next() & ((1u64 << bits) - 1)) as u32
    }
}

/// What a history is like.
struct Character {
    /// Most µs between steps.
    pause: u32,
    /// Marked, lost, reordered, arrived twice: so many of 256 ACKs.
    marked: u32,
    lost: u32,
    twice: u32,
    /// Most segments of a write.
    write: u32,
    /// Most segments of an ACK.
    ack: u32,
    /// Long pauses: so many of 256.
    idle: u32,
    /// The receiver's window is small, or closed: so many of 256 ACKs.
    windows: u32,
    /// Uncommon events: one in so many steps.
    uncommon: u32,
}

/// A history of at most `length` steps.
pub fn history(random: &mut Random, length: u32) -> History {
    let r = random;
    let character = Character {
        pause: r.any(&[50, 500, 3_000, 20_000, 100_000]),
        marked: r.any(&[0, 5, 40, 128, 240]),
        lost: r.any(&[0, 2, 20, 60, 150]),
        twice: r.any(&[0, 2, 20, 80]),
        write: r.any(&[1, 2, 4, 10, 40, 100]),
        ack: r.any(&[1, 2, 2, 4, 20]),
        idle: r.any(&[0, 2, 10, 60]),
        windows: r.any(&[0, 0, 2, 40]),
        uncommon: r.any(&[20, 60, 400]),
    };

    let mut flags = r.below(32);
    // Most have ECN and SACK.
    if !r.one_in(8) {
        flags |= ffi::ORACLE_START_ECN;
    }
    if !r.one_in(8) {
        flags |= ffi::ORACLE_START_SACK;
    }
    if !r.one_in(8) {
        flags &= !ffi::ORACLE_START_ACCECN;
    }
    let start = ffi::oracle_start {
        isn: if r.one_in(2) {
            0u32.wrapping_sub(r.log(20))
        } else {
            r.log(32)
        },
        rcv_isn: 0u32.wrapping_sub(r.log(20)),
        mss: r.any(&[536, 1428, 1448, 8948]),
        flags,
        syns: r.any(&[0, 0, 0, 1, 2, 3]),
        delivered: if r.one_in(2) {
            0u32.wrapping_sub(r.log(10))
        } else {
            0
        },
        initcwnd: r.any(&[0, 0, 0, 2, 4, 30]),
        clamp: r.any(&[u32::MAX >> 1, 1000, 60, 20, 8, 2]),
        cwnd: r.any(&[0, 0, 2, 3, 5, 20, 80, 1 << 20, 1 << 30]),
        ssthresh: r.any(&[0x7fff_ffff, 0x7fff_ffff, 2, 3, 10, 100]),
    };

    let mut parameters = DEFAULTS;
    for which in 0..ffi::ORACLE_PARAMETERS {
        if r.one_in(4) {
            parameters[which as usize] = parameter(r, which);
        }
    }

    let mut made = History {
        start,
        before_wrap: r.log(16) + 1,
        late: r.below(2),
        parameters,
        steps: Vec::new(),
    };
    let length = r.within(length / 8, length);
    while (made.steps.len() as u32) < length {
        steps(r, &character, &mut made.steps);
    }
    made
}

/// A value for parameter `which` that the kernel would take.
fn parameter(r: &mut Random, which: u32) -> u32 {
    match which {
        ffi::ORACLE_SHIFT_G => r.below(11),
        ffi::ORACLE_ALPHA_ON_INIT => r.any(&[0, 1, 100, 512, 1023, 1024]),
        ffi::ORACLE_PACING_SS_RATIO | ffi::ORACLE_PACING_CA_RATIO => r.below(1001),
        ffi::ORACLE_REORDERING => r.within(1, 10),
        ffi::ORACLE_PLB_CONG_THRESH => r.below(257),
        ffi::ORACLE_PLB_REHASH_ROUNDS => r.below(32),
        ffi::ORACLE_PLB_IDLE_REHASH_ROUNDS => r.below(32),
        ffi::ORACLE_FRTO => r.below(3),
        ffi::ORACLE_RECOVERY => r.below(8),
        ffi::ORACLE_EARLY_RETRANS => r.any(&[0, 3, 4]),
        ffi::ORACLE_MIN_TSO_SEGS => r.within(1, 4),
        // What is on or off.
        _ => r.below(2),
    }
}

/// The next steps, most often one.
fn steps(r: &mut Random, is: &Character, to: &mut Vec<Step>) {
    let mut push = |kind, a, b, c| to.push(Step { kind, a, b, c });
    if r.one_in(is.uncommon) {
        match r.below(9) {
            0 => {
                let which = r.below(ffi::ORACLE_PARAMETERS);
                let value = parameter(r, which);
                push(ffi::ORACLE_PARAMETER, which, value, 0);
            }
            1 => push(ffi::ORACLE_LOCAL_DROPS, r.below(3), 0, 0),
            2 => push(ffi::ORACLE_PMTU, r.log(16), 0, 0),
            3 => push(ffi::ORACLE_SOCKET, r.below(4), 0, 0),
            4 => {
                let clamp = r.any(&[2, 3, 8, 30, 100, u32::MAX >> 1]);
                push(
                    ffi::ORACLE_LIMITS,
                    clamp,
                    r.any(&[0, 0, 2, 10, 40]),
                    r.log(20),
                );
            }
            5 => push(ffi::ORACLE_CHOOSE, 0, 0, 0),
            6 => push(ffi::ORACLE_SET_CWND, r.log(8) + 1, 0, 0),
            _ => {
                // What is not sent now is sent before time passes.
                let held = r.any(&[ffi::ORACLE_SOCKET_BLOCKED, ffi::ORACLE_SOCKET_CORKED]);
                push(ffi::ORACLE_SOCKET, held, 0, 0);
                push(ffi::ORACLE_WRITE, r.within(1, is.write), 0, 0);
                push(ffi::ORACLE_SOCKET, 0, 0, 0);
                push(ffi::ORACLE_PUSH, 0, 0, 0);
            }
        }
        return;
    }

    match r.below(100) {
        0..=29 => {
            let idle = r.below(256) < is.idle;
            let bits = match (idle, r.one_in(50)) {
                (false, _) => 0,
                (true, false) => 12,
                (true, true) => 31,
            };
            let jiffies = r.log(bits);
            push(ffi::ORACLE_TIME, jiffies, r.below(is.pause) + 1, 0);
        }
        30..=49 => push(ffi::ORACLE_WRITE, r.within(1, is.write), 0, 0),
        50..=52 => push(ffi::ORACLE_PUSH, 0, 0, 0),
        53..=55 => push(ffi::ORACLE_TIMER, 0, 0, 0),
        56..=61 => {
            let marked = if r.below(256) < is.marked {
                3
            } else {
                r.any(&[0, 2, 2])
            };
            push(ffi::ORACLE_RECEIVE, r.log(11), marked, r.below(2));
        }
        _ => ack(r, is, to),
    }
}

/// An ACK.
fn ack(r: &mut Random, is: &Character, to: &mut Vec<Step>) {
    let mut flags = 0;
    let mut acked = r.within(1, is.ack);
    let mut sacked = 0;
    if r.below(256) < is.marked {
        flags |= ffi::ORACLE_ACK_ECE;
    }
    if r.below(256) < is.lost {
        // The first was lost, or is late.
        acked = if r.one_in(3) { acked } else { 0 };
        sacked = r.log(12) & (r.log(32) | 7);
    }
    if r.below(256) < is.twice {
        flags |= ffi::ORACLE_ACK_DSACK;
    }
    if r.below(512) < is.twice + is.lost {
        flags |= ffi::ORACLE_ACK_OLD_ECHO;
    }
    if r.below(256) < is.windows {
        flags |= r.any(&[ffi::ORACLE_ACK_NO_WINDOW, ffi::ORACLE_ACK_SMALL_WINDOW]);
    }
    if r.one_in(64) {
        flags |= 1 << r.within(3, 8);
        if r.one_in(2) {
            acked = 0;
        }
    }
    if r.one_in(64) {
        acked = 200;
    }
    to.push(Step {
        kind: ffi::ORACLE_ACK,
        a: acked,
        b: sacked,
        c: flags,
    });
}
