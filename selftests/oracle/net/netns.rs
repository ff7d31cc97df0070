// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `rust/net/netns.rs`: there are no namespaces.

use kernel::error::Result;

/// Keeps nothing anywhere.
pub(crate) struct Registration<T>(core::marker::PhantomData<T>);

impl<T> Registration<T> {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(core::marker::PhantomData))
    }
}
