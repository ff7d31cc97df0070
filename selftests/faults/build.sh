#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build the test-only modules for the stock kernel, in the root:  selftests/faults/build.sh
#
# Those of this folder and of beside/.  Objects and modules go to out/kbuild/KVER-faults and KVER-beside, away from the
# product's, and no further: nothing installs them.  What kbuild needs is there after `make setup`.

. "$(dirname -- "${BASH_SOURCE[0]}")/../../virtme/lib.sh"

need_root
kver=$(kernel_chosen)
kdir_ready "$kver" || die "the KDIR for '$kver' is not there" "make setup"
mkdir -p "$TOP/out/kbuild/$kver-"{faults,beside}
# One build at a time in this checkout: two runs would write the same objects.
exec 7>"$TOP/out/kbuild/lock-faults"
flock 7
for folder in faults beside; do
	"$TOP/virtme/enter.sh" -- make -s -C "$(kdir_of "$kver")" -j"$(nproc)" "M=/lowtail/selftests/$folder" \
		MO="/lowtail/out/kbuild/$kver-$folder" CC="$KERNEL_CC" "${KERNEL_MAKE[@]}" V="${V:-0}" ${CLIPPY:+CLIPPY="$CLIPPY"} modules
done
