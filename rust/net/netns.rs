// SPDX-License-Identifier: GPL-2.0

//! State per network namespace, with the sysctls and the `/proc/net` file that show it.
//!
//! C header: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h)
//!
//! # Vocabulary
//!
//! - A [`PerNamespace`] type is the state itself; one value lives in every network namespace, those
//!   that exist at registration and those that are made later.
//! - A [`Registration`] keeps it there; dropping it takes the value out of every namespace.
//! - A [`Namespace`] is where a socket is; [`state`] finds the value there.

use core::{
    marker::PhantomData,
    mem::MaybeUninit,
    ptr::NonNull, //
};

use kernel::{
    error::{
        from_result,
        to_result, //
    },
    prelude::*,
    seq_file::SeqFile,
    types::Opaque, //
};

use super::{
    bindings,
    layout::gcc,
    setting::Setting,
    sysctl::{
        Sysctl,
        Table, //
    }, //
};

/// State that every network namespace has one value of.
pub(crate) trait PerNamespace: Send + Sync + Sized + 'static {
    /// The registration of this type; a `static` of the module.
    fn subsystem() -> Pin<&'static Subsystem<Self>>;

    /// The sysctls, relative to [`SYSCTL_PATH`](Self::SYSCTL_PATH); may be none.
    fn sysctls() -> &'static [Sysctl<Self>];

    /// Where the sysctls are, for example `net/ipv4`.
    const SYSCTL_PATH: &'static CStr;

    /// The name of the file in `/proc/net`.
    const PROC_NAME: &'static CStr;

    /// The value for a new namespace.
    ///
    /// # Errors
    ///
    /// Any; the namespace is then not made.
    fn new() -> Result<Self>;

    /// Writes the contents of the file in `/proc/net`.
    fn show(&self, file: &SeqFile);
}

/// What lies in a namespace: the value, and what shows it.
struct Slot<T: PerNamespace> {
    value: T,
    sysctls: Option<Table>,
    proc: bool,
}

/// The C structure that adds a [`PerNamespace`] type to every namespace.
///
/// # Invariants
///
/// `ops` is a valid `struct pernet_operations` for `T` whose `id` is [`Self::id`].
pub(crate) struct Subsystem<T> {
    ops: Opaque<MaybeUninit<bindings::pernet_operations>>,
    id: Setting<u32>,
    _value: PhantomData<fn() -> T>,
}

// SAFETY: `ops` is written by `Registration` before it is shared, then by C under `pernet_ops_rwsem`.
unsafe impl<T> Sync for Subsystem<T> {}

impl<T: PerNamespace> Subsystem<T> {
    /// A subsystem, not registered yet.
    pub(crate) const fn new() -> Self {
        Self {
            ops: Opaque::new(MaybeUninit::zeroed()),
            id: Setting::new(0),
            _value: PhantomData,
        }
    }

    /// `struct pernet_operations`, `init`.
    ///
    /// # Safety
    ///
    /// C calls it with a namespace whose slot is of this type.
    unsafe extern "C" fn init(net: *mut bindings::net) -> c_int {
        from_result(|| {
            let slot = slot_of::<T>(net).ok_or(ENOENT)?.as_ptr();
            let value = T::new()?;
            // SAFETY: C allocated the slot for this type and hands it to nobody before this is
            // over.
            unsafe {
                slot.write(Slot {
                    value,
                    sysctls: None,
                    proc: false,
                })
            };
            // SAFETY: Just written; exclusive until the sysctls are registered, and they refer to
            // `value` only.
            let shown = unsafe { Self::publish(net, slot) };
            if shown.is_err() {
                // SAFETY: Just written, and shown to nobody.
                unsafe { Self::withdraw(net, slot) };
            }
            shown.map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// `slot` must be the initialised slot of `net`, and not shared yet.
    unsafe fn publish(net: *mut bindings::net, slot: *mut Slot<T>) -> Result {
        // SAFETY: The slot is initialised.
        let value = unsafe { &raw const (*slot).value };
        if !T::sysctls().is_empty() {
            // SAFETY: The value stays where it is as long as the table.
            let table = unsafe { Table::new(net, T::SYSCTL_PATH, T::sysctls(), value) }?;
            // SAFETY: The slot is initialised and this is the only writer.
            unsafe { (*slot).sysctls = Some(table) };
        }

        // SAFETY: `net` is valid; `show` is a function of this module, removed by `withdraw`.
        let made = unsafe {
            bindings::lowtail_proc_create(net, T::PROC_NAME.as_char_ptr(), Some(Self::show))
        };
        if !made {
            return Err(ENOMEM);
        }
        // SAFETY: As above.
        unsafe { (*slot).proc = true };
        Ok(())
    }

    /// # Safety
    ///
    /// `slot` must be the initialised slot of `net`; nobody may use it afterwards.
    unsafe fn withdraw(net: *mut bindings::net, slot: *mut Slot<T>) {
        // SAFETY: By the safety requirement.
        if unsafe { (*slot).proc } {
            // SAFETY: Created by `publish`. Waits for readers that are inside `show`.
            unsafe { bindings::lowtail_proc_remove(net, T::PROC_NAME.as_char_ptr()) };
        }
        // SAFETY: By the safety requirement. The table goes first, and waits for its users.
        unsafe {
            (*slot).sysctls = None;
            slot.drop_in_place();
        }
    }

    /// `struct pernet_operations`, `exit`.
    ///
    /// # Safety
    ///
    /// C calls it with a namespace whose slot is of this type.
    unsafe extern "C" fn exit(net: *mut bindings::net) {
        if let Some(slot) = slot_of::<T>(net) {
            // SAFETY: `init` succeeded for this namespace. No socket of it is left that could be
            // in a hook (`state`), and C frees the memory afterwards.
            unsafe { Self::withdraw(net, slot.as_ptr()) };
        }
    }

    /// Shows the file in `/proc/net`.
    ///
    /// # Safety
    ///
    /// C calls it for a file made by [`publish`](Self::publish).
    unsafe extern "C" fn show(seq: *mut kernel::bindings::seq_file, _v: *mut c_void) -> c_int {
        // SAFETY: C passes the open file of an entry made by `lowtail_proc_create`.
        let net = unsafe { bindings::lowtail_seq_file_net(seq) };
        if let Some(slot) = slot_of::<T>(net) {
            // SAFETY: The entry exists from `publish` to `withdraw`, so the slot is initialised.
            let value = unsafe { &(*slot.as_ptr()).value };
            // SAFETY: Valid, and used by this thread only, during this call.
            value.show(unsafe { SeqFile::from_raw(seq) });
        }
        0
    }
}

/// The slot of `T` in `net`.
fn slot_of<T: PerNamespace>(net: *const bindings::net) -> Option<NonNull<Slot<T>>> {
    let id = T::subsystem().id.get();
    // SAFETY: `net` is valid by the callers, and `id` was given out by C.
    let slot = unsafe { bindings::lowtail_net_generic(net, id) };
    NonNull::new(slot.cast())
}

/// The namespace of a socket, in a hook.
///
/// # Invariants
///
/// `net` is valid for the lifetime `'a`, during which the CPU is an RCU reader.
pub(crate) struct Namespace<'a> {
    net: NonNull<bindings::net>,
    _call: PhantomData<&'a ()>,
}

impl<'a> Namespace<'a> {
    /// # Safety
    ///
    /// `net` must be valid and the caller an RCU reader for the lifetime of the result.
    #[inline]
    pub(super) unsafe fn from_raw(net: NonNull<bindings::net>) -> Self {
        // INVARIANT: By the safety requirement.
        Self {
            net,
            _call: PhantomData,
        }
    }

    /// The value of `T` in this namespace; `None` in one that is being dismantled, where a kernel
    /// socket may linger.
    ///
    /// C waits for RCU readers between the last reference to a namespace and the end of its state:
    /// that keeps the value alive for `'a`.
    #[inline]
    pub(crate) fn state<T: PerNamespace>(&self) -> Option<&'a T> {
        let id = T::subsystem().id.get();
        let net = self.net.as_ptr().cast::<u8>();
        // SAFETY: By the type invariant; gcc says where the members are. `check_net()`.
        if unsafe { net.add(gcc::NET_COUNT).cast::<u32>().read_volatile() } == 0 {
            return None;
        }
        // SAFETY: As above; this is an RCU reader, and `id` was given out by C. `net_generic()`.
        let slot = unsafe {
            let generic = net.add(gcc::NET_GEN).cast::<*const u8>().read_volatile();
            let slots = generic.add(gcc::GENERIC_PTR).cast::<*mut Slot<T>>();
            NonNull::new(*slots.add(id as usize))?
        };
        // SAFETY: The namespace is live, so `init` has succeeded and `exit` comes after an RCU
        // grace period at the earliest.
        Some(unsafe { &(*slot.as_ptr()).value })
    }
}

/// Keeps a value of `T` in every namespace.
pub(crate) struct Registration<T: PerNamespace>(Pin<&'static Subsystem<T>>);

impl<T: PerNamespace> Registration<T> {
    /// Puts a value into every namespace, present and future. May sleep.
    ///
    /// # Errors
    ///
    /// What [`PerNamespace::new`] or the registration of the sysctls returned.
    pub(crate) fn new() -> Result<Self> {
        let subsystem = T::subsystem();
        let ops = subsystem.ops.get().cast::<bindings::pernet_operations>();
        // SAFETY: Nobody else has it yet: modules are initialised once, by one thread.
        unsafe {
            ops.write(bindings::pernet_operations {
                init: Some(Subsystem::<T>::init),
                exit: Some(Subsystem::<T>::exit),
                id: subsystem.id.as_ptr(),
                size: size_of::<Slot<T>>(),
                ..core::mem::zeroed()
            });
            to_result(bindings::register_pernet_subsys(ops))?;
        }
        Ok(Self(subsystem))
    }
}

impl<T: PerNamespace> Drop for Registration<T> {
    fn drop(&mut self) {
        // SAFETY: Registered by `new`.
        unsafe { bindings::unregister_pernet_subsys(self.0.ops.get().cast()) };
    }
}
