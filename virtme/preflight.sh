#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Can modules for this kernel be built here?  virtme/preflight.sh [-t] KDIR [KVER [MODULE.ko…]]
#
# -t asks before Rust's metadata is there: configuration, toolchain and what the modules are written against.
#
# One line for each thing that is missing, with the command that mends it; nothing is built or changed.  The toolchain must
# be the one the kernel was built with, KDIR must have the Rust metadata and export what the kernel exports, the kernel
# must have what the modules use (members and prototypes are looked for, never version numbers), and a module that was
# built must carry the kernel's vermagic.  Runs wherever KDIR is: inside the root for ours, on the host for a user's own.

set -euo pipefail

before=
if [ "${1:-}" = -t ]; then
	before=1
	shift
fi
kdir=${1:?usage: preflight.sh [-t] KDIR [KVER [MODULE.ko…]]}
kver=${2:-}
shift $(($# < 2 ? $# : 2))
bad=0

missing() {
	printf 'preflight: %s: %s\n' "$1" "$2" >&2
	bad=$((bad + 1))
}

# Our own tree is mended by making it anew, a user's by what built it.
if [ -n "${LOWTAIL_OWN_KDIR:-}" ]; then
	remake="make distclean && make setup"
	toolchain=$remake
elif [ -n "${LOWTAIL_DKMS:-}" ]; then
	remake="rm -r $kdir && dkms autoinstall -k $kver"
	toolchain="run a kernel of this Debian release or of its backports, or install that version"
else
	remake="make -C $kdir modules_prepare"
	toolchain="make modules RUSTC=… BINDGEN=… CC=… KDIR=… with that version, or without KDIR=, in the root of the set-up"
fi

if [ ! -e "$kdir/Makefile" ]; then
	missing "$kdir is not a kernel build tree" "install linux-headers for the kernel, or leave KDIR= away: make modules"
	exit 1
fi
config=$kdir/include/config/auto.conf
if [ ! -e "$config" ]; then
	missing "$kdir is not configured (no include/config/auto.conf)" "$remake"
	exit 1
fi

# Value of a string option, without its quotes; empty when it is off.
option() { sed -n "s/^$1=//p" "$config" | tr -d '"'; }

# option, why the modules want it
while read -r opt why; do
	[ "$(option "$opt")" = y ] || missing "$opt is not set ($why)" "set it in the kernel's .config and rebuild the kernel, or use Debian's: make modules"
done <<'END'
CONFIG_MODULES modules at all
CONFIG_RUST the modules are Rust
CONFIG_INET TCP
CONFIG_NET_NS settings per network namespace
CONFIG_SYSCTL the settings
CONFIG_DYNAMIC_FTRACE_WITH_ARGS autocork_policy hooks tcp_push
END

if [ "$(option CONFIG_RUST)" = y ]; then
	found=$("${RUSTC:-rustc}" --version 2>/dev/null || echo none)
	want=$(option CONFIG_RUSTC_VERSION_TEXT)
	[ "$found" = "$want" ] || missing "rustc is '$found', the kernel was built with '$want'" "$toolchain"
	found=$("${BINDGEN:-bindgen}" --version workaround-for-0.69.0 2>/dev/null || echo none)
	want=$(option CONFIG_BINDGEN_VERSION_TEXT)
	# Kernels before 7.0 did not record it.
	[ -z "$want" ] || [ "$found" = "$want" ] ||
		missing "bindgen is '$found', the kernel was built with '$want'" "$toolchain"
	for f in libcore.rmeta libkernel.rmeta libbindings.rmeta libmacros.so; do
		[ -n "$before" ] || [ -e "$kdir/rust/$f" ] || {
			missing "$kdir has no Rust metadata (rust/$f)" "$remake   (Debian's header packages have none: make setup rebuilds it, and so does the package lowtail-dkms)"
			break
		}
	done
fi
found=$(LC_ALL=C "${CC:-gcc}" --version 2>/dev/null | sed -n 1p || :)
want=$(option CONFIG_CC_VERSION_TEXT)
# The name in front differs with the way the same compiler was called.
[ "${found#* }" = "${want#* }" ] || missing "the C compiler is '$found', the kernel was built with '$want'" "$toolchain"

# Every Rust symbol the kernel exports must come out of our metadata under the same mangled name.
if [ ! -s "$kdir/Module.symvers" ]; then
	missing "$kdir/Module.symvers is missing" "copy it from the kernel's linux-headers package or its build"
elif compgen -G "$kdir/rust/exports_*_generated.h" >/dev/null; then
	lost=$(comm -23 <(awk '$2 ~ /^(_R|rust_)/ && $3 == "vmlinux" { print $2 }' "$kdir/Module.symvers" | sort -u) \
		<(sed -n 's/^EXPORT_SYMBOL_RUST_GPL(\(.*\));.*/\1/p' "$kdir"/rust/exports_*_generated.h | sort -u))
	if [ -n "$lost" ]; then
		missing "$(echo "$lost" | wc -l) Rust symbols of the kernel are not in $kdir (first: $(echo "$lost" | sed -n 1p))" "$remake"
	fi
fi
# Only for the closing line.
symbols=$(awk '$2 ~ /^(_R|rust_)/ && $3 == "vmlinux"' "$kdir/Module.symvers" 2>/dev/null | wc -l)

release=$(cat "$kdir/include/config/kernel.release" 2>/dev/null || echo unknown)
[ -z "$kver" ] || [ "$release" = "$kver" ] ||
	missing "$kdir is for the kernel $release, wanted is $kver" "name the tree of that kernel: KDIR=/lib/modules/$kver/build"

# What the modules are written against: header, a pattern, what it is.
src=$kdir
[ -e "$src/include/net/tcp.h" ] || src=$(sed -n 's|^include \(.*\)/Makefile$|\1|p' "$kdir/Makefile")
if [ ! -e "$src/include/net/tcp.h" ]; then
	missing "the source that $kdir belongs to is not on this machine (${src:-unknown})" \
		"install linux-headers' common package, or unpack the kernel source there"
	src=
fi
while IFS='|' read -r header pattern what; do
	[ -n "$src" ] || break
	{ tr -s '\n\t ' ' ' <"$src/$header"; } 2>/dev/null | grep -E "$pattern" >/dev/null ||
		missing "this kernel has another $what ($header)" "use a kernel that has it, such as Debian's of the set-up: make modules"
done <<'END'
include/net/tcp.h|\(\*cong_control\)\(struct sock \*sk, u32 ack, int flag, const struct rate_sample \*rs\)|tcp_congestion_ops.cong_control
include/net/tcp.h|void tcp_push\(struct sock \*sk, int flags, int mss_now, int nonagle, int size_goal\)|prototype of tcp_push
include/net/tcp.h|struct tcp_plb_state|tcp_plb_state
include/linux/ftrace_regs.h|ftrace_regs_get_argument|ftrace_regs_get_argument
END

# Read from the file itself: modinfo need not be installed where modules are built.
for ko; do
	magic=$(LC_ALL=C tr '\0' '\n' <"$ko" | LC_ALL=C sed -n 's/^vermagic=//p')
	case $magic in
	"$release "*) ;;
	*) missing "$ko is for '${magic:-nothing}', the kernel is $release" "make clean && make modules" ;;
	esac
	# A module of the kernel itself shows the flags behind the version.
	stock=$(modinfo -k "$release" -F vermagic tcp_dctcp 2>/dev/null || :)
	[ -z "$stock" ] || [ "$magic" = "$stock" ] ||
		missing "$ko has vermagic '$magic', the kernel's own modules '$stock'" "make clean && make modules"
done

[ "$bad" = 0 ] || exit 1
echo "preflight: $release fits: $(option CONFIG_RUSTC_VERSION_TEXT | cut -d' ' -f1,2), $(option CONFIG_BINDGEN_VERSION_TEXT), $symbols Rust symbols as in the kernel"
