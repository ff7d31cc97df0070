// SPDX-License-Identifier: GPL-2.0

//! What the hooks of this module read of a packet that belongs to a socket (`struct sk_buff`).

use core::ptr::NonNull;

use super::{
    bindings,
    netns::Namespace, //
};
use crate::fault::plan::Ports;

impl From<bindings::lowtail_fault_ports> for Ports {
    fn from(ports: bindings::lowtail_fault_ports) -> Self {
        Self {
            local: ports.local,
            remote: ports.remote,
        }
    }
}

/// The ports of the packet's connection.
///
/// # Safety
///
/// `skb` must be valid, and `skb->sk` a full TCP socket.
pub(super) unsafe fn ports(skb: NonNull<bindings::sk_buff>) -> Ports {
    // SAFETY: By the safety requirement.
    unsafe { bindings::lowtail_fault_ports(skb.as_ptr()) }.into()
}

/// The namespace of the packet's socket.
///
/// # Safety
///
/// For the lifetime of the result `skb->sk` must be a full TCP socket that is kept alive, whose
/// namespace is then too, and the caller an RCU reader, as hooks and netfilter are.
pub(super) unsafe fn namespace<'a>(skb: NonNull<bindings::sk_buff>) -> Namespace<'a> {
    // SAFETY: By the safety requirement; a socket always has a namespace.
    unsafe {
        let net = bindings::lowtail_fault_net(skb.as_ptr());
        Namespace::from_raw(NonNull::new_unchecked(net))
    }
}
