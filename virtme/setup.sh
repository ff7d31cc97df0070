#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# All of the set-up, in the order and overlap that is fastest on two cores; a second run only looks.
#
# mmdebstrap uses little more than one core, so the kernel's packages come and its source is unpacked beside it.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
. "$TOP/virtme/mirror.sh"

ready() {
	local kver
	[ -z "${UPDATE:-}" ] || return 1
	kver=$(kernel_stock)
	root_ready && kernel_ready "$kver" && kdir_ready "$kver"
}

# beside CMD…: start CMD in a process group of its own; join: wait for it and for its success.  It is the quiet one, so
# that one line of the terminal is not written by both, and it must not go on alone when the script ends early.
beside() {
	LOWTAIL_QUIET=1 setsid "$@" </dev/null &
	other=$!
	trap 'kill -- "-$other" 2>/dev/null || :' EXIT
	trap 'exit 130' INT TERM
}

join() {
	wait "$other"
	trap - EXIT INT TERM
}

# With KERNEL=NAME one of our own is built, once the stock one is there.
own_kernel() {
	[ -z "${KERNEL:-}" ] || "$TOP/virtme/built.sh"
}

[ -z "${KERNEL:-}" ] || kernel_chosen >/dev/null
if ready; then
	own_kernel
	exit
fi
need_root
lock_setup
if ready; then
	own_kernel
	exit
fi
need_space
host_packages
if root_ready || [ -z "$(mirror)" ]; then
	"$TOP/virtme/root.sh"
	"$TOP/virtme/kernel.sh" choose
	"$TOP/virtme/kernel.sh" fetch
else
	"$TOP/virtme/kernel.sh" choose
	beside "$TOP/virtme/kernel.sh" fetch
	"$TOP/virtme/root.sh"
	join
fi
"$TOP/virtme/kernel.sh" install
# rustc's part of the KDIR is one long chain, which leaves room for cargo.
beside "$TOP/virtme/programs.sh"
"$TOP/virtme/kdir.sh"
join
say "set-up complete: kernel $(kernel_stock) in $CACHE"
own_kernel
