// SPDX-License-Identifier: GPL-2.0

//! The TCP socket as a congestion control's callback sees it.
//!
//! [`Sock`] is typed by the callback ([`context`]): what a callback may not do, its socket does
//! not offer. A reader gets plain numbers; a writer puts one number back. Deciding is not done
//! here.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use kernel::prelude::*;

use super::{
    bindings,
    cong::{
        CaState,
        CongestionControl,
        Ops, //
    }, //
};

/// Bytes of private data in a socket (`ICSK_CA_PRIV_SIZE`).
pub(super) const PRIVATE_SIZE: usize = {
    const fn size_of_field<T, U>(_: fn(&T) -> &U) -> usize {
        size_of::<U>()
    }
    size_of_field(|icsk: &bindings::inet_connection_sock| &icsk.icsk_ca_priv)
};

/// The slow-start threshold of a connection that was never congested (`TCP_INFINITE_SSTHRESH`).
pub(crate) const INFINITE_SSTHRESH: u32 = bindings::TCP_INFINITE_SSTHRESH;

/// Which callback a [`Sock`] belongs to, and so what it offers.
pub(crate) mod context {
    /// The caller owns the socket: private data may be written.
    pub(crate) trait Owned {}
    /// The window and what belongs to it may be set.
    pub(crate) trait Window: Owned {}

    /// `init`: the operations may be switched.
    pub(crate) enum Init {}
    /// Callbacks that control the window.
    pub(crate) enum Control {}
    /// `cwnd_event`: ACKs may be sent.
    pub(crate) enum Receive {}
    /// `ssthresh` and `undo_cwnd`: the window is the answer, it is not set.
    pub(crate) enum Query {}
    /// `get_info`: nobody owns the socket, everything is read-only.
    pub(crate) enum Info {}

    impl Owned for Init {}
    impl Owned for Control {}
    impl Owned for Receive {}
    impl Owned for Query {}
    impl Window for Init {}
    impl Window for Control {}
    impl Window for Receive {}
}

/// A TCP socket during a callback of algorithm `A`.
///
/// # Invariants
///
/// `sk` points to a valid TCP socket (a `struct tcp_sock`) whose private data belongs to `A`, for
/// the lifetime `'a`; and when `C` is [`context::Owned`], the caller of the callback owns it.
pub(crate) struct Sock<'a, A, C> {
    sk: NonNull<bindings::sock>,
    _callback: PhantomData<(&'a mut bindings::tcp_sock, A, C)>,
}

/// Readers of one member of `struct tcp_sock`.
macro_rules! readers {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $($field:ident).+;)+) => {
        $(
            $(#[$doc])*
            #[inline]
            pub(crate) fn $name(&self) -> $type {
                // SAFETY: By the type invariant the socket is valid. Volatile, since without the
                // lock (`get_info`) another CPU may be writing; such a read is of one machine word.
                unsafe { (&raw const (*self.tp())$(.$field)+).read_volatile() }
            }
        )+
    };
}

impl<'a, A: CongestionControl, C> Sock<'a, A, C> {
    /// # Safety
    ///
    /// `sk` must satisfy the type invariants for `'a`.
    #[inline]
    pub(super) unsafe fn from_raw(sk: *mut bindings::sock) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            // SAFETY: By the safety requirement `sk` is valid, so it is not null.
            sk: unsafe { NonNull::new_unchecked(sk) },
            _callback: PhantomData,
        }
    }

    /// The same socket, to be passed on in a register: a reference to it would have to be in memory,
    /// and whoever calls what is rarely called would pay for that each time.
    #[inline]
    pub(crate) fn reborrow(&mut self) -> Sock<'_, A, C> {
        // INVARIANT: Those of `self`, which is borrowed for as long.
        Sock {
            sk: self.sk,
            _callback: PhantomData,
        }
    }

    /// `struct sock`.
    #[inline]
    pub(super) fn as_ptr(&self) -> *mut bindings::sock {
        self.sk.as_ptr()
    }

    /// `tcp_sk()`.
    #[inline]
    fn tp(&self) -> *mut bindings::tcp_sock {
        // CAST: `struct tcp_sock` begins with `struct sock`, by way of its first members.
        self.as_ptr().cast()
    }

    /// `inet_csk()`.
    #[inline]
    fn icsk(&self) -> *mut bindings::inet_connection_sock {
        // CAST: `struct inet_connection_sock` begins with `struct sock`.
        self.as_ptr().cast()
    }

    readers! {
        /// Congestion window, in packets.
        snd_cwnd: u32 = snd_cwnd;
        /// Slow-start threshold, in packets.
        snd_ssthresh: u32 = snd_ssthresh;
        /// Window before the present reduction, in packets.
        prior_cwnd: u32 = prior_cwnd;
        /// Packets delivered during the present reduction.
        prr_delivered: u32 = prr_delivered;
        /// Packets sent during the present reduction.
        prr_out: u32 = prr_out;
        /// Packets sent and not cumulatively acknowledged.
        packets_out: u32 = packets_out;
        /// Most packets out since the window was last full or restarted.
        snd_cwnd_used: u32 = snd_cwnd_used;
        /// When the window was last full or changed, in jiffies.
        snd_cwnd_stamp: u32 = snd_cwnd_stamp;
        /// When data was last sent, in jiffies.
        lsndtime: u32 = lsndtime;
        /// Packets delivered so far, modulo 2³².
        delivered: u32 = delivered;
        /// Packets delivered with CE so far, modulo 2³².
        delivered_ce: u32 = delivered_ce;
        /// Reordering that is taken for granted, in packets.
        reordering: u32 = reordering;
        /// SND.UNA.
        snd_una: u32 = snd_una;
        /// SND.NXT.
        snd_nxt: u32 = snd_nxt;
        /// The sequence number after the last byte that is queued.
        write_seq: u32 = write_seq;
        /// The window that the peer advertises, in bytes.
        snd_wnd: u32 = snd_wnd;
        /// RCV.NXT.
        rcv_nxt: u32 = rcv_nxt;
        /// Sender's maximum segment size, in bytes.
        mss_cache: u32 = mss_cache;
        /// Smoothed round-trip time, in eighths of a microsecond.
        srtt_us_8: u32 = srtt_us;
        /// RTT of the packet that was sent last of all that were delivered, in microseconds; 0 when
        /// there is none yet.
        rack_rtt_us: u32 = rack.rtt_us;
        /// SND.UNA when the present recovery began; 0 when it was undone.
        undo_marker: u32 = undo_marker;
        /// Retransmission timeout, in jiffies.
        rto: u32 = inet_conn.icsk_rto;
    }

    /// Packets in the network, by the best of our knowledge (`tcp_packets_in_flight()`).
    pub(crate) fn packets_in_flight(&self) -> u32 {
        // SAFETY: By the type invariant.
        unsafe { bindings::lowtail_packets_in_flight(self.as_ptr()) }
    }

    /// The congestion state (`icsk_ca_state`).
    pub(crate) fn ca_state(&self) -> CaState {
        // SAFETY: By the type invariant.
        CaState::from_raw(unsafe { bindings::lowtail_ca_state(self.as_ptr()) })
    }

    /// ECN was negotiated, classic or accurate (`tcp_ecn_mode_any()`).
    pub(crate) fn uses_ecn(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::lowtail_ecn_mode_any(self.as_ptr()) }
    }

    /// There is no connection: the socket listens, or is closed.
    pub(crate) fn is_unconnected(&self) -> bool {
        self.state() == bindings::LOWTAIL_TCP_LISTEN || self.state() == bindings::LOWTAIL_TCP_CLOSE
    }

    /// A passive open is being completed.
    pub(crate) fn is_passive_open(&self) -> bool {
        self.state() == bindings::LOWTAIL_TCP_SYN_RECV
    }

    /// `sk_state`.
    fn state(&self) -> u8 {
        // SAFETY: By the type invariant; volatile as in `readers!`.
        unsafe { (&raw const (*self.as_ptr()).__sk_common.skc_state).read_volatile() }
    }

    /// Data waits to be sent for the first time (`!tcp_write_queue_empty()`).
    #[inline]
    pub(crate) fn has_unsent_data(&self) -> bool {
        self.write_seq() != self.snd_nxt()
    }

    /// The window limits what is sent (`tcp_is_cwnd_limited()`).
    pub(crate) fn is_cwnd_limited(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::lowtail_is_cwnd_limited(self.as_ptr()) }
    }

    /// The application is held by its send buffer, or has gone.
    pub(crate) fn is_sndbuf_limited(&self) -> bool {
        // SAFETY: By the type invariant; the socket is owned or only `sk_socket` could change.
        unsafe { bindings::lowtail_sndbuf_limited(self.as_ptr()) }
    }

    /// The initial window: the route's, or 10 packets (`tcp_init_cwnd()`).
    pub(crate) fn init_cwnd(&self) -> u32 {
        // SAFETY: By the type invariant.
        unsafe { bindings::lowtail_init_cwnd(self.as_ptr()) }
    }

    /// `net.ipv4.tcp_pacing_ss_ratio` in slow start, else `net.ipv4.tcp_pacing_ca_ratio`; in percent.
    #[inline]
    pub(crate) fn pacing_ratio(&self, slow_start: bool) -> u32 {
        if slow_start {
            self.pacing_ss_ratio()
        } else {
            self.pacing_ca_ratio()
        }
    }

    /// `SO_MAX_PACING_RATE`, in bytes a second.
    pub(crate) fn max_pacing_rate(&self) -> u64 {
        // SAFETY: By the type invariant.
        unsafe { (&raw const (*self.as_ptr()).sk_max_pacing_rate).read_volatile() as u64 }
    }

    /// The reordering timer fired: this is `tcp_rack_reo_timeout()`, not an ACK.
    pub(crate) fn reordering_timer_fired(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { bindings::lowtail_reordering_timer_fired(self.as_ptr()) }
    }

    /// A copy of the private data, for who does not own the socket.
    pub(crate) fn snapshot(&self) -> A::Data {
        // SAFETY: By the type invariant the data is `A`'s; `Ops::new` checked size and alignment;
        // zeroed and copied data is valid by the bounds of `Data`. Volatile as in `readers!`.
        unsafe {
            (&raw const (*self.icsk()).icsk_ca_priv)
                .cast::<A::Data>()
                .read_volatile()
        }
    }
}

/// The present time, in jiffies modulo 2³² (`tcp_jiffies32`).
#[inline]
pub(crate) fn jiffies32() -> u32 {
    // SAFETY: Reads a global counter that changes by itself.
    unsafe { (&raw const bindings::jiffies).read_volatile() as u32 }
}

/// 32 random bits.
pub(crate) fn random32() -> u32 {
    // SAFETY: May be called anywhere.
    unsafe { bindings::lowtail_random() }
}

/// Whether sequence number `a` lies before `b` (`before()`).
pub(crate) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl<A: CongestionControl, C: context::Owned> Sock<'_, A, C> {
    /// The private data.
    #[inline]
    pub(crate) fn data(&self) -> &A::Data {
        // SAFETY: As in `snapshot`, and the socket is owned: it is written through `data_mut` only.
        unsafe { &*(&raw const (*self.icsk()).icsk_ca_priv).cast::<A::Data>() }
    }

    /// The private data, to be changed.
    #[inline]
    pub(crate) fn data_mut(&mut self) -> &mut A::Data {
        // SAFETY: As in `snapshot`, and the socket is owned; the borrow of `self` makes it exclusive.
        unsafe { &mut *(&raw mut (*self.icsk()).icsk_ca_priv).cast::<A::Data>() }
    }
}

impl<A: CongestionControl, C: context::Window> Sock<'_, A, C> {
    /// Sets the congestion window, in packets (`tcp_snd_cwnd_set()`): at least 1 and at most 2³¹ − 1,
    /// which is what core TCP takes for a window.
    #[inline]
    pub(crate) fn set_snd_cwnd(&mut self, cwnd: u32) {
        let cwnd = cwnd.clamp(1, i32::MAX as u32);
        // SAFETY: By the type invariant; the socket is owned. Volatile, since it is read without
        // the lock.
        unsafe { (&raw mut (*self.tp()).snd_cwnd).write_volatile(cwnd) };
    }

    /// Sets the slow-start threshold, in packets.
    #[inline]
    pub(crate) fn set_snd_ssthresh(&mut self, ssthresh: u32) {
        // SAFETY: As for the window.
        unsafe { (&raw mut (*self.tp()).snd_ssthresh).write_volatile(ssthresh) };
    }

    /// Sets the pacing rate, in bytes a second.
    #[inline]
    pub(crate) fn set_pacing_rate(&mut self, rate: u64) {
        // SAFETY: As for the window.
        unsafe { (&raw mut (*self.as_ptr()).sk_pacing_rate).write_volatile(rate as c_ulong) };
    }

    /// Asks for packets to be spaced by the pacing rate: by sch_fq, or by a timer of TCP's own
    /// where that is not installed. Whether it was this call that turned the timer on.
    pub(crate) fn ask_for_pacing(&mut self) -> bool {
        // SAFETY: By the type invariant; the socket is owned.
        unsafe { bindings::lowtail_ask_for_pacing(self.as_ptr()) }
    }

    /// Takes back an [`ask_for_pacing`](Self::ask_for_pacing) that returned true. What waits for
    /// the timer may be sent at once.
    pub(crate) fn end_pacing(&mut self) {
        // SAFETY: By the type invariant; the socket is owned.
        unsafe { bindings::lowtail_end_pacing(self.as_ptr()) };
    }

    /// With pacing on, lets the next packet wait for `usecs` µs from now, if it need not wait yet.
    pub(crate) fn hold_back(&mut self, usecs: u32) {
        // SAFETY: By the type invariant; the socket is owned.
        unsafe { bindings::lowtail_hold_back(self.as_ptr(), usecs) };
    }

    /// Sets the number of packets delivered during the present reduction.
    pub(crate) fn set_prr_delivered(&mut self, delivered: u32) {
        // SAFETY: By the type invariant; the socket is owned.
        unsafe { (*self.tp()).prr_delivered = delivered };
    }

    /// Notes that the window was full or changed at `now`, in jiffies.
    pub(crate) fn set_snd_cwnd_stamp(&mut self, now: u32) {
        // SAFETY: By the type invariant; the socket is owned.
        unsafe { (*self.tp()).snd_cwnd_stamp = now };
    }

    /// Forgets how much of the window was used.
    pub(crate) fn reset_snd_cwnd_used(&mut self) {
        // SAFETY: By the type invariant; the socket is owned.
        unsafe { (*self.tp()).snd_cwnd_used = 0 };
    }

    /// Grows the window for `acked` packets by slow start or additive increase, if it was what
    /// limited the sender (`tcp_reno_cong_avoid()`).
    pub(crate) fn reno_cong_avoid(&mut self, ack: u32, acked: u32) {
        // SAFETY: By the type invariant; the socket is owned.
        unsafe { bindings::tcp_reno_cong_avoid(self.as_ptr(), ack, acked) };
    }
}

impl<A: CongestionControl> Sock<'_, A, context::Query> {
    /// `tcp_reno_ssthresh()`, in packets.
    pub(crate) fn reno_ssthresh(&mut self) -> u32 {
        // SAFETY: By the type invariant; the socket is owned.
        unsafe { bindings::tcp_reno_ssthresh(self.as_ptr()) }
    }

    /// `tcp_reno_undo_cwnd()`, in packets.
    pub(crate) fn reno_undo_cwnd(&mut self) -> u32 {
        // SAFETY: By the type invariant; the socket is owned.
        unsafe { bindings::tcp_reno_undo_cwnd(self.as_ptr()) }
    }
}

impl<A: CongestionControl> Sock<'_, A, context::Init> {
    /// From now on the connection is `B`'s. `B` shares `A`'s data, and belongs to the module whose
    /// reference the socket already holds; its `init` is not called.
    pub(crate) fn switch_to<B>(&mut self, ops: Pin<&'static Ops<B>>)
    where
        B: CongestionControl<Data = A::Data>,
    {
        // SAFETY: By the type invariant of `Ops` the operations are valid, and `'static`.
        unsafe { bindings::lowtail_swap_ca_ops(self.as_ptr(), ops.as_ptr()) };
    }

    /// Stops setting ECT on outgoing packets (`INET_ECN_dontxmit()`).
    pub(crate) fn clear_ect(&mut self) {
        // SAFETY: By the type invariant; the socket is owned.
        unsafe { bindings::lowtail_ecn_dontxmit(self.as_ptr()) };
    }
}

impl<A: CongestionControl> Sock<'_, A, context::Receive> {
    /// A delayed ACK is due (`ICSK_ACK_TIMER`).
    pub(crate) fn is_ack_delayed(&self) -> bool {
        // SAFETY: By the type invariant.
        unsafe { (*self.icsk()).icsk_ack.pending & bindings::LOWTAIL_ACK_TIMER != 0 }
    }

    /// ACK the present segment without delay (`ICSK_ACK_NOW`).
    pub(crate) fn ack_now(&mut self) {
        // SAFETY: By the type invariant; the socket is owned.
        unsafe { (*self.icsk()).icsk_ack.pending |= bindings::LOWTAIL_ACK_NOW };
    }

    /// Sends an ACK for everything before `rcv_nxt`, now.
    pub(crate) fn send_ack(&mut self, rcv_nxt: u32) {
        // SAFETY: By the type invariant; the socket is owned.
        unsafe { bindings::__tcp_send_ack(self.as_ptr(), rcv_nxt, 0) };
    }

    /// Whether ACKs carry ECE from now on (`TCP_ECN_DEMAND_CWR`).
    pub(crate) fn echo_congestion(&mut self, echo: bool) {
        // SAFETY: By the type invariant; the socket is owned.
        let flags = unsafe { &mut (*self.tp()).ecn_flags };
        if echo {
            *flags |= bindings::LOWTAIL_ECN_DEMAND_CWR;
        } else {
            *flags &= !bindings::LOWTAIL_ECN_DEMAND_CWR;
        }
    }
}
