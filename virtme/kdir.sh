#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Make a KDIR for the stock kernel: Debian's header package carries no Rust metadata, so rebuild it.
#
# dkms/prepare.sh builds it; Module.symvers and vmlinux (BTF) are the stock kernel's own.  virtme/preflight.sh checks the
# result instead of hoping.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

need_root
lock_setup
kver=$(kernel_stock)
kernel_ready "$kver" || die "there is no kernel '$kver' in the root yet" "make setup"
kdir_ready "$kver" && exit 0

kdir=$(kdir_of "$kver")
tmp=$ROOT/usr/src/lowtail/tmp-kdir-$kver
headers=/usr/src/linux-headers-$kver

# The tree remembers its own absolute name, so it is built under its final one: the temporary folder is mounted there.
prepare() {
	rm -rf "$tmp"
	mkdir -p "$tmp" "$ROOT$kdir"
	"$TOP/virtme/enter.sh" -w -b "$tmp:$kdir" -- sh -ec '
		kdir=$1 src=$2 kver=$3 headers=$4 cc=$5
		shift 5
		dkms/prepare.sh "$src" "$kdir" "$kver" "/usr/lib/modules/$kver/config" "$cc" "$@"
		cp "$headers/Module.symvers" "$kdir/"
		[ ! -e "$headers/vmlinux" ] || cp "$headers/vmlinux" "$kdir/"' \
		sh "$kdir" "$(source_of "$kver")" "$kver" "$headers" "$KERNEL_CC" "${KERNEL_MAKE[@]}"
	rm -rf "${ROOT:?}$kdir"
	mv -T "$tmp" "$ROOT$kdir"
	: >"$ROOT/usr/lib/lowtail/kdir-$kver.tmp"
	sync -f "$ROOT/usr/lib/lowtail"
	mv "$ROOT/usr/lib/lowtail/kdir-$kver.tmp" "$ROOT/usr/lib/lowtail/kdir-$kver"
}

logged kdir "KDIR for $kver, Rust metadata rebuilt" "the KDIR for $kver could not be built" \
	"read $CACHE/log/kdir.log; when a file is missing there: rm -r $CACHE/src, then start again" \
	prepare
