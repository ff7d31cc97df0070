#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Build what modules in Rust need of a kernel and Debian's header packages lack:
#
#	dkms/prepare.sh SOURCE OBJECTS KERNEL CONFIG CC [VARIABLE=VALUE...]
#
# with more variables for make, ARCH= for one.
#
# Same source, same .config, same rustc, bindgen and gcc as Debian's give the same symbol names.  Used by make setup (in
# the root) and by DKMS (on the machine that the modules are for).

set -eu
src=$1 obj=$2 kver=$3 config=$4 cc=$5
shift 5

cp "$config" "$obj/.config"
make -C "$src" O="$obj" CC="$cc" "$@" olddefconfig
grep -qx CONFIG_RUST=y "$obj/.config" || {
	echo "*** with this toolchain the kernel configures without Rust:"
	make -C "$src" O="$obj" CC="$cc" "$@" rustavailable || :
	exit 1
}
# KERNELRELEASE is Debian's name; a plain tree would call itself by the version alone.
make -C "$src" -j"$(nproc)" O="$obj" CC="$cc" KERNELRELEASE="$kver" "$@" modules_prepare
echo "$kver" >"$obj/include/config/kernel.release"
