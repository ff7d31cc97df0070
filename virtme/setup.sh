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
	kver=$(kernel_chosen)
	root_ready && kernel_ready "$kver" && kdir_ready "$kver"
}

if ready; then exit 0; fi
need_root
lock_setup
if ready; then exit 0; fi
need_space
host_packages
if root_ready || [ -z "$(mirror)" ]; then
	"$TOP/virtme/root.sh"
	"$TOP/virtme/kernel.sh" fetch
else
	# The quiet one of the two, so that one line of the terminal is not written by both.
	LOWTAIL_QUIET=1 "$TOP/virtme/kernel.sh" fetch &
	fetch=$!
	# On an error here the other must not go on alone.
	trap 'kill "$fetch" 2>/dev/null || :; wait' EXIT
	"$TOP/virtme/root.sh"
	trap - EXIT
	wait "$fetch"
fi
"$TOP/virtme/kernel.sh" install
"$TOP/virtme/kdir.sh"
say "set-up complete: kernel $(kernel_chosen) in $CACHE"
