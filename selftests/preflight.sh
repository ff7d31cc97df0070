#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Kernels that cannot be had: each gets one line that names what is missing and one remedy, before a page of a
# compiler's words (C22, C23, C24).  Runs in the build root, on copies of the stock kernel's KDIR with one thing
# changed; no guest.  KTAP.

# shellcheck disable=SC2317 # cases are called by run_cases
. "$(dirname -- "$0")/lib.sh"

top=$(cd "$here/.." && pwd -P)
kdir=$(readlink -f "/lib/modules/${KVER:?}/build")
source=$(sed -n 's|^include \(.*\)/Makefile$|\1|p' "$kdir/Makefile")
work=$(mktemp -d)
defer rm -rf "$work"
export CC=${KERNEL_CC:?preflight.sh: runs inside the build root}
host_only=1

# A tree like KDIR: links, but for what a case changes.
copy() {
	local f
	rm -rf "${work:?}/k"
	mkdir -p "$work/k/include/config"
	for f in "$kdir"/* "$kdir"/include/*; do
		case ${f#"$kdir/"} in
		include | include/config | Makefile) ;;
		*) ln -s "$f" "$work/k/${f#"$kdir/"}" ;;
		esac
	done
	cp "$kdir"/include/config/{auto.conf,kernel.release} "$work/k/include/config/"
	cp "$kdir/Makefile" "$work/k/"
}

# one_line TEXT…: preflight refuses, in one line, which has each TEXT.
one_line() {
	local said text
	if said=$("$top/virtme/preflight.sh" "$work/k" "$KVER" 2>&1); then
		echo "it was not refused: $said"
		return 1
	fi
	echo "$said"
	expect "lines" 1 "$(wc -l <<<"$said")" || return
	for text; do
		case $said in
		*"$text"*) ;;
		*)
			echo "does not say '$text'"
			return 1
			;;
		esac
	done
}

# set_config SED…
set_config() {
	sed -i "$@" "$work/k/include/config/auto.conf"
}

# header FILE SED…: the source with one header changed, as KDIR's Makefile names it.
header() {
	mkdir -p "$work/s/include/net" "$work/s/include/linux"
	cp "$source/include/net/tcp.h" "$work/s/include/net/"
	cp "$source/include/linux/ftrace_regs.h" "$work/s/include/linux/"
	sed -i "${@:2}" "$work/s/$1"
	echo "include $work/s/Makefile" >"$work/k/Makefile"
}

as_it_is() {
	copy || return
	"$top/virtme/preflight.sh" "$work/k" "$KVER" || void "the unchanged tree is refused"
}

rust_off() {
	copy && set_config '/^CONFIG_RUST=/d' && one_line "CONFIG_RUST is not set" "rebuild the kernel"
}

no_metadata() {
	copy && rm "$work/k/rust" && mkdir "$work/k/rust" && one_line "no Rust metadata" "modules_prepare"
}

other_rustc() {
	copy && set_config 's/^CONFIG_RUSTC_VERSION_TEXT=.*/CONFIG_RUSTC_VERSION_TEXT="rustc 0.0.0"/' &&
		one_line "rustc is 'rustc " "built with 'rustc 0.0.0'" "RUSTC="
}

other_bindgen() {
	copy && set_config 's/^CONFIG_BINDGEN_VERSION_TEXT=.*/CONFIG_BINDGEN_VERSION_TEXT="bindgen 0.0.0"/' &&
		one_line "bindgen is 'bindgen " "built with 'bindgen 0.0.0'" "BINDGEN="
}

other_gcc() {
	copy && set_config 's/^CONFIG_CC_VERSION_TEXT=.*/CONFIG_CC_VERSION_TEXT="gcc (GCC) 0.0.0"/' &&
		one_line "the C compiler is" "built with 'gcc (GCC) 0.0.0'" "CC="
}

other_release() {
	copy && echo 6.12.0-other >"$work/k/include/config/kernel.release" &&
		one_line "is for the kernel 6.12.0-other" "KDIR="
}

no_ftrace_args() {
	copy && set_config '/^CONFIG_DYNAMIC_FTRACE_WITH_ARGS=/d' && one_line "CONFIG_DYNAMIC_FTRACE_WITH_ARGS is not set"
}

cong_control() {
	copy && header include/net/tcp.h 's/(\*cong_control)(struct sock \*sk, u32 ack, int flag,/(*cong_control)(struct sock *sk,/' &&
		one_line "another tcp_congestion_ops.cong_control" "include/net/tcp.h" "make modules"
}

tcp_push() {
	copy && header include/net/tcp.h 's/^void tcp_push(struct sock \*sk, int flags,/void tcp_push(struct sock *sk,/' &&
		one_line "another prototype of tcp_push" "make modules"
}

# What preflight does not look for, compilers find: a member under another name, seen by this process alone.
member_renamed() {
	local said log=$top/out/kbuild/renamed-member
	copy && echo renamed-member >"$work/k/include/config/kernel.release" || return
	sed "s/\\<$2;/${2}_renamed;/" "$source/include/$1" >"$work/header"
	! cmp -s "$work/header" "$source/include/$1" || void "$1 has no $2" || return
	mount --bind "$work/header" "$source/include/$1" || return
	said=$(KVER='' "$top/virtme/modules.sh" "$work/k" 2>&1) && rc=0 || rc=$?
	umount "$source/include/$1"
	rm -rf "$log"
	said=$(grep -v '^preflight: .* fits: ' <<<"$said")
	echo "$said"
	[ "$rc" != 0 ] || void "it was built" || return
	expect "lines, remedy included" 2 "$(wc -l <<<"$said")" || return
	grep -q "error: .* struct $3 has no member $2 " <<<"$said" && grep -q "^lowtail: remedy: " <<<"$said"
}

in_tcp_sock() {
	member_renamed linux/tcp.h prr_out tcp_sock
}

in_rate_sample() {
	member_renamed net/tcp.h acked_sacked rate_sample
}

need sed mktemp mount
run_cases \
	"the control: the tree as it is fits:as_it_is" \
	"CONFIG_RUST off (C22):rust_off" \
	"headers without Rust metadata (C22):no_metadata" \
	"another rustc than the kernel's (C22):other_rustc" \
	"another bindgen (C22):other_bindgen" \
	"another C compiler (C22):other_gcc" \
	"the tree of another kernel (C23):other_release" \
	"no ftrace with arguments (C22):no_ftrace_args" \
	"cong_control with another signature (C24):cong_control" \
	"tcp_push with another prototype (C24):tcp_push" \
	"a member of tcp_sock renamed (C24):in_tcp_sock" \
	"a member of rate_sample renamed (C24):in_rate_sample"
