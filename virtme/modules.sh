#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build both kernel modules after a preflight:  virtme/modules.sh          for the stock kernel, in the root
#                                               virtme/modules.sh KDIR     for a tree of the user's, on the host
#
# Objects go to out/kbuild/, the sources stay clean.  For the stock kernel out/modules/KVER becomes what /lib/modules/KVER
# is in the guest: the stock modules and ours, with depmod's indexes, so that modprobe and autoload find them.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

names=(tcp_dctcp_floor autocork_policy)
make_args=(V="${V:-0}" ${CLIPPY:+CLIPPY="$CLIPPY"})

# Kbuild refuses a separate object folder next to objects of an in-tree build.
refuse_in_tree() {
	[ ! -e "$TOP/modules.order" ] ||
		die "the checkout holds the objects of a build in place (make -C KDIR M=…)" "make clean"
}

# told LOG CMD…: the build, with its output in LOG.  A kernel that lacks what the modules use makes gcc or rustc say so a
# hundred times over: the first that names it is told, in a line, and where the rest is.
told() {
	local log=$1 lacks
	shift
	if "$@" >"$log" 2>&1; then
		cat "$log"
		return
	fi
	# GNU quotes are plain under LC_ALL=C, and curly elsewhere.
	lacks=$(sed -nE "s/[‘’]/'/g
		s/.*error: '(const )?((struct|union) [a-z_0-9]+)' has no member named '([A-Za-z_0-9]+)'.*/\2 has no member \4/p
		s/^error\[E0609\]: no field \`([A-Za-z_0-9]+)\` on type \`&?([^\`]+)\`.*/struct \2 has no member \1/p
		s/^error\[E0560\]: struct \`([^\`]+)\` has no field named \`([A-Za-z_0-9]+)\`.*/struct \1 has no member \2/p" "$log" |
		sed -n 1p)
	[ -n "$lacks" ] || {
		cat "$log"
		die "the modules did not build" "read the lines above"
	}
	die "the modules cannot be built for this kernel: its $lacks (compilers' words: ${log#"$TOP"/})" \
		"use a kernel that has it, such as Debian's of the set-up: make modules"
}

# Runs inside the root: arguments KDIR KVER CC MAKE-ARGS…
build_stock() {
	"$TOP/virtme/enter.sh" -- bash -euc '
		kdir=$1 kver=$2 cc=$3
		shift 3
		export LOWTAIL_OWN_KDIR=1 CC=$cc
		virtme/preflight.sh "$kdir" "$kver"
		[ "$cc" != clang ] || set -- LLVM=1 "$@"
		make -s -C "$kdir" -j"$(nproc)" M=/lowtail MO="/lowtail/out/kbuild/$kver" CC="$cc" "$@" modules
		virtme/preflight.sh "$kdir" "$kver" "out/kbuild/$kver"/*.ko >/dev/null' \
		bash "$(kdir_of "$1")" "$1" "$(kernel_cc "$1")" "${KERNEL_MAKE[@]}" "${make_args[@]}"
}

# The indexes are made beside the stock modules, which depmod must see below the same folder.
index_modules() {
	local kver=$1 dir=$TOP/out/modules/$1 name
	rm -rf "$dir" "$dir.tmp"
	mkdir -p "$dir.tmp/kernel" "$dir.tmp/updates"
	: >"$dir.tmp/vmlinuz"
	cp "$(modules_of "$kver")"/modules.{order,builtin,builtin.modinfo} "$dir.tmp/"
	for name in "${names[@]}"; do
		cp "$TOP/out/kbuild/$kver/$name.ko" "$dir.tmp/updates/"
	done
	"$TOP/virtme/enter.sh" -b "$dir.tmp:/mnt" -b "$(modules_of "$kver")/kernel:/mnt/kernel" -- sh -ec '
		mkdir -p /tmp/lib/modules
		ln -s /mnt "/tmp/lib/modules/$1"
		depmod -b /tmp "$1"' sh "$kver"
	mv -T "$dir.tmp" "$dir"
}

mkdir -p "$TOP/out/kbuild"
if [ -n "${1:-}" ]; then
	kdir=$(cd "$1" 2>/dev/null && pwd -P) || die "there is no folder $1" "KDIR=/lib/modules/\$(uname -r)/build"
	[ -z "${CC:-}" ] || [ "${CC:-}" = cc ] || make_args+=(CC="$CC")
	[ -z "${RUSTC:-}" ] || make_args+=(RUSTC="$RUSTC")
	[ -z "${BINDGEN:-}" ] || make_args+=(BINDGEN="$BINDGEN")
	CC=${CC:-gcc} "$TOP/virtme/preflight.sh" "$kdir" "${KVER:-}"
	refuse_in_tree
	out=$TOP/out/kbuild/$(cat "$kdir/include/config/kernel.release")
	mkdir -p "$out"
	told "$out/build.log" make -C "$kdir" -j"$(nproc)" M="$TOP" MO="$out" "${make_args[@]}" modules
	"$TOP/virtme/preflight.sh" "$kdir" "${KVER:-}" "$out"/*.ko
	say "modules: ${out#"$TOP"/}/{$(IFS=,; echo "${names[*]}")}.ko"
	exit 0
fi

need_root
kver=$(kernel_chosen)
kdir_ready "$kver" || die "the KDIR for '$kver' is not there" "make setup"
refuse_in_tree
# One build at a time in this checkout: two `make` runs would write the same objects.
exec 7>"$TOP/out/kbuild/lock"
flock 7
mkdir -p "$TOP/out/kbuild/$kver"
told "$TOP/out/kbuild/$kver/build.log" build_stock "$kver"
stamp=$TOP/out/modules/$kver/modules.dep.bin
for name in "${names[@]}"; do
	if [ ! -e "$stamp" ] || [ "$TOP/out/kbuild/$kver/$name.ko" -nt "$stamp" ]; then
		index_modules "$kver"
		break
	fi
done
