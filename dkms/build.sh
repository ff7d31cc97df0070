#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What DKMS runs in its copy of the sources:  dkms/build.sh KERNEL HEADERS
#
# The kernel that is asked for decides, not the running one.  Objects go to out/kbuild/KERNEL, where dkms.conf looks.

set -euo pipefail

kver=$1 out=$PWD/out/kbuild/$1
kdir=$(dkms/kdir.sh "$@")
cc=$(sed -n 's/^CONFIG_CC_VERSION_TEXT="\?\([^ "]*\).*/\1/p' "$kdir/include/config/auto.conf")
export CC=$cc LOWTAIL_DKMS=1
virtme/preflight.sh "$kdir" "$kver"
mkdir -p "$out"
make -C "$kdir" -j"$(nproc)" M="$PWD" MO="$out" CC="$cc" modules
virtme/preflight.sh "$kdir" "$kver" "$out"/*.ko
