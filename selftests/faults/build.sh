#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build the test-only modules for the stock kernel, in the root:  selftests/faults/build.sh
#
# Those of this folder, of beside/ and of detectors/; for a kernel without BTF also the layouts that selftests/watch.py
# asks for (layouts/types.btf).  Objects and modules go to out/kbuild/KVER-FOLDER, away from the
# product's, and no further: nothing installs them.  What kbuild needs is there after `make setup`.

. "$(dirname -- "${BASH_SOURCE[0]}")/../../virtme/lib.sh"

need_root
kver=$(kernel_chosen)
kdir_ready "$kver" || die "the KDIR for '$kver' is not there" "make setup"
folders=(faults beside detectors)
kernel_has "$kver" CONFIG_DEBUG_INFO_BTF || folders+=(layouts)
mkdir -p "$TOP/out/kbuild"
# One build at a time in this checkout: two runs would write the same objects.
exec 7>"$TOP/out/kbuild/lock-faults"
flock 7
cc=$(kernel_cc "$kver")
[ "$cc" != clang ] || LLVM=1
for folder in "${folders[@]}"; do
	mkdir -p "$TOP/out/kbuild/$kver-$folder"
	"$TOP/virtme/enter.sh" -- make -s -C "$(kdir_of "$kver")" -j"$(nproc)" "M=/lowtail/selftests/$folder" \
		MO="/lowtail/out/kbuild/$kver-$folder" CC="$cc" ${LLVM:+LLVM=1} "${KERNEL_MAKE[@]}" V="${V:-0}" ${CLIPPY:+CLIPPY="$CLIPPY"} modules
done
if [ "$folder" = layouts ]; then
	"$TOP/virtme/enter.sh" -- pahole --btf_encode_detached="/lowtail/out/kbuild/$kver-layouts/types.btf" \
		"/lowtail/out/kbuild/$kver-layouts/lowtail_layouts.o"
fi
