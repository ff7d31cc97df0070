#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build the kernel's own DCTCP in BPF out of its selftests, for comparison:  selftests/bpf_dctcp.sh
#
# The source stays where the set-up unpacked it; the object is out/bpf/KVER/bpf_dctcp.o, which floor.py
# and fallback.py register in a guest.

. "$(dirname -- "${BASH_SOURCE[0]}")/../virtme/lib.sh"

if [ "${1:-}" = --inside ]; then
	out=$2
	kdir=/lib/modules/$KVER/build
	mkdir -p "$out/include"
	ln -sfn "$KSRC/tools/lib/bpf" "$out/include/bpf"
	bpftool btf dump file "$kdir/vmlinux" format c >"$out/vmlinux.h"
	"$KSRC/scripts/bpf_doc.py" --header --file "$KSRC/tools/include/uapi/linux/bpf.h" >"$out/bpf_helper_defs.h"
	exec clang -O2 -g --target=bpf -fms-extensions -Wno-microsoft-anon-tag \
		-I"$out" -I"$out/include" -I"$KSRC/tools/testing/selftests/bpf" \
		-c "$KSRC/tools/testing/selftests/bpf/progs/bpf_dctcp.c" -o "$out/bpf_dctcp.o"
fi

need_root
kver=$(kernel_chosen)
kdir_ready "$kver" || die "the KDIR for '$kver' is not there" "make setup"
[ ! -e "$TOP/out/bpf/$kver/bpf_dctcp.o" ] || exit 0
"$TOP/virtme/enter.sh" -- selftests/bpf_dctcp.sh --inside "/lowtail/out/bpf/$kver"
