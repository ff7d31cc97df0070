// SPDX-License-Identifier: GPL-2.0

//! Congestion controls: the trait, the operations made from it, and their registration.
//!
//! C headers: [`include/net/tcp.h`](srctree/include/net/tcp.h)
//!
//! # Vocabulary
//!
//! - An **algorithm** is a type with an implementation of [`CongestionControl`]. It has no value:
//!   all its state is per connection, in [`CongestionControl::Data`].
//! - Its **operations** ([`Ops`]) are the `struct tcp_congestion_ops` that core TCP calls; a
//!   `static`, since sockets point to it.
//! - A **registration** makes operations selectable by name. Operations that are never registered
//!   can be switched to from another algorithm's `init` ([`Sock::switch_to`]).
//!
//! ```text
//!        socket()             handshake done           packets, ACKs, timers         close()
//!   ┌──────────────┐ zeroed ┌─────────────────┐      ┌───────────────────────┐
//!   │ ops assigned │───────►│ init()          │─────►│ every other callback  │──────► (nothing)
//!   └──────────────┘  Data  └────────┬────────┘      └───────────────────────┘
//!          │                         │ switch_to()              ▲
//!          │ callbacks on zeroed or  └──────────────────────────┘
//!          ▼ copied Data (SYN-ACK, accepted children)
//! ```
//!
//! # Why `Data` is plain
//!
//! Core TCP zeroes private data, copies it from listeners to accepted sockets, and never calls a
//! destructor for operations that were switched away from. So [`CongestionControl::Data`] has to
//! be valid when zeroed, valid when copied, and without anything to drop:
//! [`Zeroable`] + [`Copy`].

use core::marker::PhantomData;

use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};

use super::{
    bindings,
    sock::{
        context,
        Sock, //
    },
    this_module, //
};

/// `icsk_ca_state` (`enum tcp_ca_state`).
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CaState {
    /// Nothing unusual.
    Open = bindings::tcp_ca_state_TCP_CA_Open as u8,
    /// Duplicate ACKs or SACKs, not yet taken for loss.
    Disorder = bindings::tcp_ca_state_TCP_CA_Disorder as u8,
    /// The window is being reduced because of ECN or a local drop.
    Cwr = bindings::tcp_ca_state_TCP_CA_CWR as u8,
    /// Fast retransmit.
    Recovery = bindings::tcp_ca_state_TCP_CA_Recovery as u8,
    /// After an RTO, or SACK reneging.
    Loss = bindings::tcp_ca_state_TCP_CA_Loss as u8,
}

impl CaState {
    /// The state with this number; one that this kernel should not know counts as Open.
    pub(super) fn from_raw(state: u8) -> Self {
        match u32::from(state) {
            bindings::tcp_ca_state_TCP_CA_Disorder => CaState::Disorder,
            bindings::tcp_ca_state_TCP_CA_CWR => CaState::Cwr,
            bindings::tcp_ca_state_TCP_CA_Recovery => CaState::Recovery,
            bindings::tcp_ca_state_TCP_CA_Loss => CaState::Loss,
            _ => CaState::Open,
        }
    }

    /// `tcp_in_cwnd_reduction()`: the window is on its way down to ssthresh.
    pub(crate) fn is_reducing(self) -> bool {
        matches!(self, CaState::Cwr | CaState::Recovery)
    }
}

/// The events that [`CongestionControl::cwnd_event`] is told (`enum tcp_ca_event`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaEvent {
    /// The retransmission timer fired (`CA_EVENT_LOSS`).
    Loss,
    /// A segment arrived with CE (`CA_EVENT_ECN_IS_CE`).
    EcnIsCe,
    /// A segment arrived with ECT and without CE (`CA_EVENT_ECN_NO_CE`).
    EcnNoCe,
}

/// What an ACK brought, as [`CongestionControl::cong_control`] is told it.
#[derive(Clone, Copy)]
pub(crate) struct Ack {
    /// The acknowledgment number.
    pub(crate) ack: u32,
    /// Packets newly acknowledged or selectively acknowledged (`rs->acked_sacked`).
    pub(crate) delivered: u32,
    /// Packets newly marked lost (`rs->losses`).
    pub(crate) lost: u32,
    pub(super) flag: c_int,
}

/// The bits of `flag` are private to `net/ipv4/tcp_input.c`, yet passed to `cong_control`; the
/// host's tests compare these with the kernel source.
impl Ack {
    /// This ACK acknowledged new data.
    pub(super) const FLAG_DATA_ACKED: c_int = 0x04;
    /// This ACK acknowledged a SYN.
    pub(super) const FLAG_SYN_ACKED: c_int = 0x10;
    /// New SACK.
    pub(super) const FLAG_DATA_SACKED: c_int = 0x20;
    /// SND.UNA changed.
    pub(super) const FLAG_SND_UNA_ADVANCED: c_int = 0x400;

    /// SND.UNA advanced.
    pub(crate) fn advanced(self) -> bool {
        self.flag & Self::FLAG_SND_UNA_ADVANCED != 0
    }

    /// New data was acknowledged cumulatively.
    pub(crate) fn acknowledged_data(self) -> bool {
        self.flag & Self::FLAG_DATA_ACKED != 0
    }

    /// Anything was acknowledged or selectively acknowledged (`FLAG_FORWARD_PROGRESS`).
    pub(crate) fn progressed(self) -> bool {
        self.flag & (Self::FLAG_DATA_ACKED | Self::FLAG_SYN_ACKED | Self::FLAG_DATA_SACKED) != 0
    }
}

/// What `ss -i` shows of a connection (`union tcp_cc_info`).
pub(crate) enum Info {
    /// `INET_DIAG_DCTCPINFO` (`struct tcp_dctcp_info`).
    Dctcp {
        /// ECN is in use; otherwise the rest is 0.
        enabled: bool,
        /// The receiver's CE state.
        ce_state: bool,
        /// Alpha, of 1024.
        alpha: u32,
        /// Bytes delivered with CE in this observation window.
        ecn_bytes: u32,
        /// Bytes delivered in this observation window.
        total_bytes: u32,
    },
}

/// A congestion control algorithm (`struct tcp_congestion_ops`), of the kind that owns its window.
///
/// Core TCP does nothing to the window of a connection whose algorithm has `cong_control`, with
/// three exceptions that the algorithm is told of in time: `tcp_enter_loss()` (then
/// [`set_state`](Self::set_state)), undo ([`undo_cwnd`](Self::undo_cwnd)), and the initial window
/// ([`init`](Self::init)). [`before_transmit`](Self::before_transmit) comes before every decision
/// to send.
///
/// All callbacks run in softirq or with softirqs off, except `init` and `get_info`: they must not
/// sleep and must not allocate.
#[vtable]
pub(crate) trait CongestionControl: Sized + 'static {
    /// Per-connection data; see the [module](self) for why it is plain.
    type Data: Zeroable + Copy;

    /// The name it is selected by, at most 15 bytes.
    const NAME: &'static CStr;

    /// Ask for ECN on every connection, SYN included (`TCP_CONG_NEEDS_ECN`).
    const NEEDS_ECN: bool = false;

    /// The connection is about to become established, or the algorithm was just selected on it.
    fn init(_sk: &mut Sock<'_, Self, context::Init>) {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// An ACK was processed as far as SND.UNA, and congestion state comes next.
    fn in_ack_event(_sk: &mut Sock<'_, Self, context::Control>) {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// The whole of an ACK was processed: choose window and pacing rate.
    fn cong_control(sk: &mut Sock<'_, Self, context::Control>, ack: Ack);

    /// `icsk_ca_state` is about to become `new`; [`Sock::ca_state`] is still the old one.
    fn set_state(_sk: &mut Sock<'_, Self, context::Control>, _new: CaState) {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Something happened that the window or the peer should know of.
    fn cwnd_event(_sk: &mut Sock<'_, Self, context::Receive>, _event: CaEvent) {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// The first packet leaves while none is in flight.
    fn tx_start(_sk: &mut Sock<'_, Self, context::Control>) {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// Core TCP is about to decide what to send, new data or retransmissions. Returns the least
    /// number of segments to put into one TSO packet (`min_tso_segs`).
    fn before_transmit(_sk: &mut Sock<'_, Self, context::Control>) -> u32 {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// The slow-start threshold after a sign of congestion, in packets.
    fn ssthresh(sk: &mut Sock<'_, Self, context::Query>) -> u32;

    /// The window after a reduction turned out to be wrong, in packets.
    fn undo_cwnd(sk: &mut Sock<'_, Self, context::Query>) -> u32;

    /// The connection ends, or goes on with another algorithm.
    fn release(_sk: &mut Sock<'_, Self, context::Control>) {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }

    /// What `ss -i` shows. The socket is not locked.
    fn get_info(_sk: &Sock<'_, Self, context::Info>) -> Info {
        build_error!(kernel::error::VTABLE_DEFAULT_ERROR)
    }
}

/// The operations of algorithm `A`, for core TCP to call.
///
/// # Invariants
///
/// `inner` is a valid `struct tcp_congestion_ops` whose callbacks are those of [`Callbacks`] for
/// `A`, and whose owner is the module that this is a `static` of.
#[repr(transparent)]
pub(crate) struct Ops<A: CongestionControl> {
    inner: Opaque<bindings::tcp_congestion_ops>,
    _algorithm: PhantomData<A>,
}

// SAFETY: Only C writes to `inner`, the list head and the key, under `tcp_cong_list_lock`.
unsafe impl<A: CongestionControl> Sync for Ops<A> {}

impl<A: CongestionControl> Ops<A> {
    /// The operations of `A`, owned by this module; to be put into a `static` of it.
    pub(crate) const fn new() -> Self {
        const {
            assert!(
                size_of::<A::Data>() <= super::sock::PRIVATE_SIZE,
                "congestion control: Data does not fit into icsk_ca_priv"
            );
            assert!(
                align_of::<A::Data>() <= align_of::<u64>(),
                "congestion control: Data is aligned more strictly than icsk_ca_priv"
            );
            assert!(
                A::NAME.to_bytes_with_nul().len() <= bindings::TCP_CA_NAME_MAX as usize,
                "congestion control: the name is too long"
            );
        }

        // SAFETY: `struct tcp_congestion_ops` is valid when zeroed: null pointers, no flags.
        let mut ops: bindings::tcp_congestion_ops = unsafe { core::mem::zeroed() };

        let name = A::NAME.to_bytes();
        let mut i = 0;
        while i < name.len() {
            ops.name[i] = name[i];
            i += 1;
        }
        if A::NEEDS_ECN {
            ops.flags = bindings::LOWTAIL_CONG_NEEDS_ECN;
        }
        ops.owner = this_module::as_ptr();

        ops.cong_control = Some(Callbacks::<A>::cong_control);
        ops.ssthresh = Some(Callbacks::<A>::ssthresh);
        ops.undo_cwnd = Some(Callbacks::<A>::undo_cwnd);
        if A::HAS_INIT {
            ops.init = Some(Callbacks::<A>::init);
        }
        if A::HAS_IN_ACK_EVENT {
            ops.in_ack_event = Some(Callbacks::<A>::in_ack_event);
        }
        if A::HAS_SET_STATE {
            ops.set_state = Some(Callbacks::<A>::set_state);
        }
        if A::HAS_CWND_EVENT {
            ops.cwnd_event = Some(Callbacks::<A>::cwnd_event);
        }
        if A::HAS_TX_START {
            ops.cwnd_event_tx_start = Some(Callbacks::<A>::tx_start);
        }
        if A::HAS_BEFORE_TRANSMIT {
            ops.min_tso_segs = Some(Callbacks::<A>::before_transmit);
        }
        if A::HAS_RELEASE {
            ops.release = Some(Callbacks::<A>::release);
        }
        if A::HAS_GET_INFO {
            ops.get_info = Some(Callbacks::<A>::get_info);
        }

        // INVARIANT: Just made so.
        Self {
            inner: Opaque::new(ops),
            _algorithm: PhantomData,
        }
    }

    /// The C structure.
    pub(super) fn as_ptr(&self) -> *mut bindings::tcp_congestion_ops {
        self.inner.get()
    }
}

/// Keeps an algorithm selectable by its name; dropping it takes the name away.
///
/// Sockets that use the algorithm keep the module loaded, so none is left when a registration in
/// the module's state is dropped.
pub(crate) struct Registration<A: CongestionControl>(Pin<&'static Ops<A>>);

impl<A: CongestionControl> Registration<A> {
    /// Makes `ops` selectable.
    ///
    /// # Errors
    ///
    /// `EEXIST` when the name, or its hash, is taken; `EINVAL` when a required callback is missing.
    pub(crate) fn new(ops: Pin<&'static Ops<A>>) -> Result<Self> {
        // SAFETY: By the type invariant of `Ops` the structure is valid; it is `'static`, so it
        // outlives the registration.
        to_result(unsafe { bindings::tcp_register_congestion_control(ops.as_ptr()) })?;
        Ok(Self(ops))
    }
}

impl<A: CongestionControl> Drop for Registration<A> {
    fn drop(&mut self) {
        // SAFETY: Registered by `new`, and by nobody else since the name would have been taken.
        unsafe { bindings::tcp_unregister_congestion_control(self.0.as_ptr()) };
    }
}

/// The C side's view of `A`: functions that core TCP calls, and nobody else may.
///
/// Each is passed a valid `sk` of a TCP socket whose `icsk_ca_ops` were made by [`Ops::new`] for
/// `A`; and, but for `get_info`, the caller owns the socket.
struct Callbacks<A>(PhantomData<A>);

impl<A: CongestionControl> Callbacks<A> {
    /// `struct tcp_congestion_ops`, `init`.
    ///
    /// # Safety
    ///
    /// As [`Callbacks`] says.
    unsafe extern "C" fn init(sk: *mut bindings::sock) {
        // SAFETY: As `Callbacks` says.
        A::init(&mut unsafe { Sock::from_raw(sk) });
    }

    /// `struct tcp_congestion_ops`, `in_ack_event`.
    ///
    /// # Safety
    ///
    /// As [`Callbacks`] says.
    unsafe extern "C" fn in_ack_event(sk: *mut bindings::sock, _flags: u32) {
        // SAFETY: As `Callbacks` says.
        A::in_ack_event(&mut unsafe { Sock::from_raw(sk) });
    }

    /// `struct tcp_congestion_ops`, `cong_control`.
    ///
    /// # Safety
    ///
    /// As [`Callbacks`] says.
    unsafe extern "C" fn cong_control(
        sk: *mut bindings::sock,
        ack: u32,
        flag: c_int,
        rs: *const bindings::rate_sample,
    ) {
        // SAFETY: `tcp_ack()` passes a valid rate sample.
        let rs = unsafe { &*rs };
        let ack = Ack {
            ack,
            delivered: rs.acked_sacked,
            lost: rs.losses as u32,
            flag,
        };
        // SAFETY: As `Callbacks` says.
        A::cong_control(&mut unsafe { Sock::from_raw(sk) }, ack);
    }

    /// `struct tcp_congestion_ops`, `set_state`.
    ///
    /// # Safety
    ///
    /// As [`Callbacks`] says.
    unsafe extern "C" fn set_state(sk: *mut bindings::sock, new: u8) {
        // SAFETY: As `Callbacks` says.
        A::set_state(&mut unsafe { Sock::from_raw(sk) }, CaState::from_raw(new));
    }

    /// `struct tcp_congestion_ops`, `cwnd_event`.
    ///
    /// # Safety
    ///
    /// As [`Callbacks`] says.
    unsafe extern "C" fn cwnd_event(sk: *mut bindings::sock, event: bindings::tcp_ca_event) {
        let event = match event {
            bindings::tcp_ca_event_CA_EVENT_LOSS => CaEvent::Loss,
            bindings::tcp_ca_event_CA_EVENT_ECN_IS_CE => CaEvent::EcnIsCe,
            bindings::tcp_ca_event_CA_EVENT_ECN_NO_CE => CaEvent::EcnNoCe,
            // Window restart and the end of CWR: not sent to algorithms that own the window.
            _ => return,
        };
        // SAFETY: As `Callbacks` says.
        A::cwnd_event(&mut unsafe { Sock::from_raw(sk) }, event);
    }

    /// `struct tcp_congestion_ops`, `cwnd_event_tx_start`.
    ///
    /// # Safety
    ///
    /// As [`Callbacks`] says.
    unsafe extern "C" fn tx_start(sk: *mut bindings::sock) {
        // SAFETY: As `Callbacks` says.
        A::tx_start(&mut unsafe { Sock::from_raw(sk) });
    }

    /// `struct tcp_congestion_ops`, `min_tso_segs`.
    ///
    /// # Safety
    ///
    /// As [`Callbacks`] says.
    unsafe extern "C" fn before_transmit(sk: *mut bindings::sock) -> u32 {
        // SAFETY: As `Callbacks` says.
        A::before_transmit(&mut unsafe { Sock::from_raw(sk) })
    }

    /// `struct tcp_congestion_ops`, `ssthresh`.
    ///
    /// # Safety
    ///
    /// As [`Callbacks`] says.
    unsafe extern "C" fn ssthresh(sk: *mut bindings::sock) -> u32 {
        // SAFETY: As `Callbacks` says.
        A::ssthresh(&mut unsafe { Sock::from_raw(sk) })
    }

    /// `struct tcp_congestion_ops`, `undo_cwnd`.
    ///
    /// # Safety
    ///
    /// As [`Callbacks`] says.
    unsafe extern "C" fn undo_cwnd(sk: *mut bindings::sock) -> u32 {
        // SAFETY: As `Callbacks` says.
        A::undo_cwnd(&mut unsafe { Sock::from_raw(sk) })
    }

    /// `struct tcp_congestion_ops`, `release`.
    ///
    /// # Safety
    ///
    /// As [`Callbacks`] says.
    unsafe extern "C" fn release(sk: *mut bindings::sock) {
        // SAFETY: As `Callbacks` says.
        A::release(&mut unsafe { Sock::from_raw(sk) });
    }

    /// `struct tcp_congestion_ops`, `get_info`.
    ///
    /// # Safety
    ///
    /// As [`Callbacks`] says.
    unsafe extern "C" fn get_info(
        sk: *mut bindings::sock,
        ext: u32,
        attr: *mut c_int,
        info: *mut bindings::tcp_cc_info,
    ) -> usize {
        // Both bits, because a request for VEGASINFO stands for "whatever there is" in old tools.
        const WANTED: u32 =
            1 << (bindings::INET_DIAG_DCTCPINFO - 1) | 1 << (bindings::INET_DIAG_VEGASINFO - 1);
        if ext & WANTED == 0 {
            return 0;
        }

        // SAFETY: As `Callbacks` says; `context::Info` asks for no lock.
        let sk = unsafe { Sock::from_raw(sk) };
        let Info::Dctcp {
            enabled,
            ce_state,
            alpha,
            ecn_bytes,
            total_bytes,
        } = A::get_info(&sk);
        let dctcp = bindings::tcp_dctcp_info {
            dctcp_enabled: enabled.into(),
            dctcp_ce_state: ce_state.into(),
            dctcp_alpha: alpha,
            dctcp_ab_ecn: ecn_bytes,
            dctcp_ab_tot: total_bytes,
        };
        // SAFETY: The caller passes room for an attribute number and for the union.
        unsafe {
            *attr = bindings::INET_DIAG_DCTCPINFO as c_int;
            (*info).dctcp = dctcp;
        }
        size_of::<bindings::tcp_dctcp_info>()
    }
}
