// SPDX-License-Identifier: GPL-2.0

//! A filter on the data segments that this host sends, in every network namespace (netfilter's
//! `NF_INET_LOCAL_OUT`, IPv4 and IPv6, after all other hooks).
//!
//! C header: [`include/linux/netfilter.h`](srctree/include/linux/netfilter.h)

use core::{
    marker::PhantomData,
    mem::MaybeUninit,
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};

use super::{
    bindings,
    netns::Namespace,
    packet, //
};
use crate::fault::{
    plan::Ports,
    segment::Segment, //
};

/// What becomes of a segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes on.
    Pass,
    /// It goes on with CE. One that is not ECT goes on as it is.
    Mark,
    /// The network lost it: it is sent as far as TCP knows.
    Lose,
}

/// A filter on data segments.
pub(crate) trait Filter: 'static {
    /// The subsystem of this filter; a `static` of the module.
    fn subsystem() -> Pin<&'static Subsystem<Self>>
    where
        Self: Sized;

    /// A TCP socket is about to send data. In softirq or with softirqs off: do not sleep.
    fn on_segment(outgoing: &Outgoing<'_>) -> Verdict;
}

/// A data segment on its way out.
///
/// # Invariants
///
/// `skb` is valid for the lifetime `'a`, and `skb->sk` is a full TCP socket.
pub(crate) struct Outgoing<'a> {
    skb: NonNull<bindings::sk_buff>,
    segment: Segment,
    ports: Ports,
    _call: PhantomData<&'a ()>,
}

impl Outgoing<'_> {
    /// The segment, and its sender's state.
    pub(crate) fn segment(&self) -> Segment {
        self.segment
    }

    /// The connection's ports.
    pub(crate) fn ports(&self) -> Ports {
        self.ports
    }

    /// The namespace that the socket is in.
    pub(crate) fn namespace(&self) -> Namespace<'_> {
        // SAFETY: By the type invariant; netfilter is an RCU reader during the call.
        unsafe { packet::namespace(self.skb) }
    }
}

/// The C structures that put filter `F` into every namespace.
///
/// # Invariants
///
/// `hook` is a valid `struct nf_hook_ops` for `F`; `pernet` is one `struct pernet_operations` for `F`
/// once it is registered.
pub(crate) struct Subsystem<F> {
    pernet: Opaque<MaybeUninit<bindings::pernet_operations>>,
    hook: bindings::nf_hook_ops,
    _filter: PhantomData<fn() -> F>,
}

// SAFETY: `pernet` is written by `Registration` before it is shared, then by C under
// `pernet_ops_rwsem`; `hook` is only read.
unsafe impl<F> Sync for Subsystem<F> {}

impl<F: Filter> Subsystem<F> {
    /// A subsystem, not registered yet.
    pub(crate) const fn new() -> Self {
        // SAFETY: `struct nf_hook_ops` is valid when zeroed: null pointers, hook type "undefined".
        let mut hook: bindings::nf_hook_ops = unsafe { core::mem::zeroed() };
        hook.hook = Some(Self::thunk);
        hook.pf = bindings::LOWTAIL_NFPROTO_INET;
        hook.hooknum = bindings::LOWTAIL_NF_LOCAL_OUT;
        hook.priority = bindings::LOWTAIL_NF_LAST;

        // INVARIANT: Just made so.
        Self {
            pernet: Opaque::new(MaybeUninit::zeroed()),
            hook,
            _filter: PhantomData,
        }
    }

    /// `struct pernet_operations`, `init`.
    ///
    /// # Safety
    ///
    /// C calls it with a valid namespace.
    unsafe extern "C" fn init(net: *mut bindings::net) -> c_int {
        // SAFETY: By the safety requirement; the hook is in a `static`, and `exit` takes it away.
        unsafe { bindings::nf_register_net_hook(net, &raw const F::subsystem().get_ref().hook) }
    }

    /// `struct pernet_operations`, `exit`.
    ///
    /// # Safety
    ///
    /// C calls it with a namespace for which `init` succeeded.
    unsafe extern "C" fn exit(net: *mut bindings::net) {
        // SAFETY: Registered by `init`. CPUs may be inside until the RCU callback that C leaves
        // behind has run; `unregister_pernet_subsys()` waits for it.
        unsafe { bindings::nf_unregister_net_hook(net, &raw const F::subsystem().get_ref().hook) };
    }

    /// `struct nf_hook_ops`, `hook`.
    ///
    /// # Safety
    ///
    /// Netfilter calls it with a packet that it owns.
    unsafe extern "C" fn thunk(
        _priv: *mut c_void,
        skb: *mut bindings::sk_buff,
        _state: *const bindings::nf_hook_state,
    ) -> c_uint {
        let mut raw = bindings::lowtail_fault_segment::default();
        // SAFETY: Netfilter passes a valid packet. When it carries data of a TCP socket, that
        // socket is sending it, so it is owned.
        let is_data = unsafe { bindings::lowtail_fault_segment(skb, &mut raw) };
        let Some(valid) = NonNull::new(skb).filter(|_| is_data) else {
            return bindings::LOWTAIL_NF_ACCEPT;
        };

        // INVARIANT: The helper has seen that the socket is a full TCP socket.
        let verdict = F::on_segment(&Outgoing {
            skb: valid,
            segment: Segment {
                seq: raw.seq,
                payload: raw.payload,
                fin: raw.fin,
                push: raw.push,
                ect: raw.ect,
                segs: raw.segs,
                snd_nxt: raw.snd_nxt,
                write_seq: raw.write_seq,
                packets_out: raw.packets_out,
                cwnd: raw.cwnd,
            },
            ports: raw.ports.into(),
            _call: PhantomData,
        });
        match verdict {
            Verdict::Pass => bindings::LOWTAIL_NF_ACCEPT,
            Verdict::Mark => {
                // SAFETY: Valid; TCP wrote this packet's headers for this transmission only.
                unsafe { bindings::lowtail_fault_mark_ce(skb) };
                bindings::LOWTAIL_NF_ACCEPT
            }
            Verdict::Lose => {
                // SAFETY: Netfilter's, which the verdict "stolen" gives to us.
                unsafe { bindings::lowtail_fault_lose(skb) };
                bindings::LOWTAIL_NF_STOLEN
            }
        }
    }
}

/// Keeps filter `F` in every namespace.
pub(crate) struct Registration<F: Filter>(Pin<&'static Subsystem<F>>);

impl<F: Filter> Registration<F> {
    /// Puts the filter into every namespace, present and future. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Self> {
        let subsystem = F::subsystem();
        let ops = subsystem.pernet.get().cast::<bindings::pernet_operations>();
        // SAFETY: Nobody else has it yet: modules are initialised once, by one thread.
        unsafe {
            ops.write(bindings::pernet_operations {
                init: Some(Subsystem::<F>::init),
                exit: Some(Subsystem::<F>::exit),
                ..core::mem::zeroed()
            });
            to_result(bindings::register_pernet_subsys(ops))?;
        }
        Ok(Self(subsystem))
    }
}

impl<F: Filter> Drop for Registration<F> {
    fn drop(&mut self) {
        // SAFETY: Registered by `new`. Waits until no CPU is inside the filter.
        unsafe { bindings::unregister_pernet_subsys(self.0.pernet.get().cast()) };
    }
}
