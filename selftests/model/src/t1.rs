// SPDX-License-Identifier: GPL-2.0

//! Both sides of T1 as the kernel source has them, and the walk through their orders.

use loom::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering, fence},
    },
    thread,
};

/// `TSQF_THROTTLED`: somebody waits for a completion.
const THROTTLED: u32 = 1;
/// `TSQF_QUEUED`: the socket is being woken up.
const QUEUED: u32 = 2;

/// What `sk_wmem_alloc` counts for the socket itself (`sk_alloc()`).
const SOCKET: u32 = 1;
/// `truesize` of the packet in the device; more than the write behind it, or nothing is corked.
const IN_DEVICE: u32 = 2000;
/// `truesize` of the write that is held.
const TAIL: u32 = 1300;

/// What the two sides keep in order: the write of one variable before the read of the other.
#[derive(Clone, Copy, Debug)]
struct Order {
    /// `smp_mb__after_atomic()` in `tcp_push()`.
    push: bool,
    /// Whether the completion's decrement is before its look at the flags. The source says
    /// `atomic_fetch_sub_release()`, then `smp_load_acquire()`, which promises nothing about that.
    /// x86 keeps the order because of the lock prefix, arm64 because an LDAR does not pass a
    /// store-release.
    wfree: bool,
}

/// The members of `struct sock` that both sides look at.
struct Socket {
    sk_wmem_alloc: AtomicU32,
    sk_tsq_flags: AtomicU32,
}

impl Socket {
    /// The end of `tcp_push()` for a write that may be corked. Returns whether it is held.
    fn push(&self, order: Order) -> bool {
        // tcp_should_autocork() has seen the packet in the device.
        if self.sk_tsq_flags.load(Ordering::Relaxed) & THROTTLED == 0 {
            self.sk_tsq_flags.fetch_or(THROTTLED, Ordering::Relaxed);
            if order.push {
                fence(Ordering::SeqCst);
            }
        }
        self.sk_wmem_alloc.load(Ordering::Relaxed) > TAIL
    }

    /// `tcp_wfree()`. Returns whether the socket is woken up.
    fn wfree(&self, order: Order) -> bool {
        self.sk_wmem_alloc
            .fetch_sub(IN_DEVICE - 1, Ordering::Release);
        if order.wfree {
            fence(Ordering::SeqCst);
        }
        let mut flags = self.sk_tsq_flags.load(Ordering::Acquire);
        loop {
            if flags & THROTTLED == 0 || flags & QUEUED != 0 {
                return false;
            }
            match self.sk_tsq_flags.compare_exchange(
                flags,
                (flags & !THROTTLED) | QUEUED,
                Ordering::SeqCst,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => flags = now,
            }
        }
    }
}

/// How many orders of the steps there were, and in how many the wake-up was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Explored {
    /// Orders that loom walked through.
    orders: u64,
    /// Those in which the write was held and nobody was woken up.
    lost: u64,
}

/// Walks through every order.
fn explore(order: Order) -> Explored {
    // The count is of the walk, not of the model: not loom's types.
    let explored = std::sync::Arc::new(std::sync::Mutex::new(Explored::default()));
    let count = std::sync::Arc::clone(&explored);

    loom::model(move || {
        let sk = Arc::new(Socket {
            sk_wmem_alloc: AtomicU32::new(SOCKET + IN_DEVICE),
            sk_tsq_flags: AtomicU32::new(0),
        });
        let device = {
            let sk = Arc::clone(&sk);
            thread::spawn(move || sk.wfree(order))
        };
        let held = sk.push(order);
        let woken = device.join().expect("the completion panicked");

        let mut explored = count.lock().expect("an earlier walk panicked");
        explored.orders += 1;
        explored.lost += u64::from(held && !woken);
    });

    *explored.lock().expect("a walk panicked")
}

fn lost(push: bool, wfree: bool) -> bool {
    let explored = explore(Order { push, wfree });
    println!("push {push}, wfree {wfree}: {explored:?}");
    assert!(explored.orders > 1, "nothing was explored");
    explored.lost > 0
}

/// 2023's kernel on arm64.
#[test]
fn lost_without_the_barrier_in_tcp_push() {
    assert!(lost(false, true));
}

/// Kernels since 6.8 on x86 and arm64.
#[test]
fn never_lost_when_both_sides_keep_their_order() {
    assert!(!lost(true, true));
}

/// Kernels since 6.8 by the words of the source alone: the completion's side has no barrier.
#[test]
fn lost_where_the_cpu_does_not_order_the_completion() {
    assert!(lost(true, false));
}

/// 2023's kernel by the words of the source alone.
#[test]
fn lost_without_any_order() {
    assert!(lost(false, false));
}
