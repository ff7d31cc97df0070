# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Common ground of the set-up scripts: where things are, how progress and failures are told, and how
# steps stay whole when they are interrupted.  Sourced, never run; it changes nothing by itself.
#
# Every step follows one rule: build under a temporary name, rename when whole, then nothing has to be
# asked about a thing that exists.  An interrupt leaves only a temporary name, which the next run removes.

set -euo pipefail

TOP=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
CACHE=${LOWTAIL_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/lowtail}
# What the root, and all that runs on this machine, is.
DEB_ARCH=amd64
# Measured: a whole set-up takes 3.4 GB; the rest is room for a second kernel, builds and results.
NEED_GB=6

SECONDS_AT_START=${LOWTAIL_T0:=$(date +%s)}
export LOWTAIL_T0

# say TEXT: one line of progress, with the time since the command was typed.
say() {
	printf '[%4ds] %s\n' "$(($(date +%s) - SECONDS_AT_START))" "$*" >&2
}

# die WHAT REMEDY: what failed, and what to do about it.
die() {
	printf 'lowtail: error: %s\n' "$1" >&2
	[ $# -lt 2 ] || printf 'lowtail: remedy: %s\n' "$2" >&2
	exit 1
}

# What the root is: Debian trixie, whose kernels come from backports, or sid, whose compilers are newer.
SUITE=${LOWTAIL_SUITE:-trixie}
# What the kernel under test is for: amd64, or arm64, which is cross-built in a root that has the tools for it.
KERNEL_ARCH=${LOWTAIL_ARCH:-amd64}
# KERNEL_CC and KERNEL_MAKE are what kernel.sh, kdir.sh and modules.sh give to make.  VARIANT marks in the cache what
# others than trixie and amd64 have of their own.
# shellcheck disable=SC2034 # used by those who source this
case $SUITE-$KERNEL_ARCH in
trixie-amd64) KERNEL_SUITE=trixie-backports KERNEL_CC=x86_64-linux-gnu-gcc-14 KERNEL_MAKE=() VARIANT='' ;;
trixie-arm64)
	KERNEL_SUITE=trixie-backports KERNEL_CC=aarch64-linux-gnu-gcc-14
	KERNEL_MAKE=(ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-) VARIANT=@arm64
	;;
sid-amd64) KERNEL_SUITE=sid KERNEL_CC=x86_64-linux-gnu-gcc-16 KERNEL_MAKE=() VARIANT=@sid ;;
trixie-* | sid-arm64) die "there is no guest for '$KERNEL_ARCH' of $SUITE" "LOWTAIL_ARCH=amd64, or arm64 with trixie" ;;
*) die "there is no set-up for Debian '$SUITE'" "LOWTAIL_SUITE=trixie or sid" ;;
esac

# logged NAME WHAT FAILED REMEDY CMD…: run CMD with its output in a log, and die of its failure with the log's
# tail.  On a terminal the line counts seconds; elsewhere only its end is printed.
#
# Never call it in a condition (`logged … || …`): bash would then ignore errors inside CMD's functions.
logged() {
	local name=$1 what=$2 failed=$3 remedy=$4 log rc pid t0
	shift 4
	mkdir -p "$CACHE/log"
	log=$CACHE/log/$name.log
	t0=$(date +%s)
	set +e
	if [ -t 2 ] && [ -z "${LOWTAIL_QUIET:-}" ]; then
		# A process group of its own, so that Ctrl-C can end the whole of it.
		set -m
		(
			set -e
			"$@"
		) </dev/null >"$log" 2>&1 &
		pid=$!
		set +m
		trap 'kill -- "-$pid" 2>/dev/null; echo >&2; die "interrupted" "start again: it goes on from here"' INT TERM
		while kill -0 "$pid" 2>/dev/null; do
			printf '\r\033[K[%4ds] %s … %ds' "$(($(date +%s) - SECONDS_AT_START))" \
				"$what" "$(($(date +%s) - t0))" >&2
			sleep 1
		done
		wait "$pid"
		rc=$?
		trap - INT TERM
		printf '\r\033[K' >&2
	else
		(
			set -e
			"$@"
		) >"$log" 2>&1
		rc=$?
	fi
	set -e
	if [ "$rc" = 0 ]; then
		say "$what: done in $(($(date +%s) - t0)) s"
		return 0
	fi
	say "$what: FAILED (exit $rc), the end of $log:"
	tail -n 20 "$log" | sed 's/^/    | /' >&2
	die "$failed" "$remedy"
}

need_root() {
	[ "$(id -u)" = 0 ] || die "this needs root: it makes a Debian root, mounts and chroots" \
		"sudo make ${LOWTAIL_GOAL:-run}"
}

need_space() {
	local free_kb
	mkdir -p "$CACHE" 2>/dev/null || die "cannot write $CACHE" "LOWTAIL_CACHE=/a/writable/folder make …"
	free_kb=$(df -Pk "$CACHE" | awk 'NR == 2 { print $4 }')
	[ "$((free_kb / 1024 / 1024))" -ge "$NEED_GB" ] ||
		die "$CACHE has $((free_kb / 1024 / 1024)) GB free, the set-up needs $NEED_GB GB" \
			"free some space, or LOWTAIL_CACHE=/a/larger/disk make …"
}

# One set-up at a time, whichever clone it was started from.
lock_setup() {
	[ -z "${LOWTAIL_LOCKED:-}" ] || return 0
	mkdir -p "$CACHE"
	exec 8>"$CACHE/setup.lock"
	if ! flock -n 8; then
		say "waiting for another lowtail set-up that holds $CACHE/setup.lock"
		flock 8
	fi
	export LOWTAIL_LOCKED=1
}

short_hash() {
	sha256sum | cut -c1-10
}

package_list() {
	local lists=("$TOP/virtme/packages")
	[ "$KERNEL_ARCH" = "$DEB_ARCH" ] || lists+=("$TOP/virtme/packages-$KERNEL_ARCH")
	# The compiler goes with the kernels of the suite.
	sed "s/#.*//; s/\\<gcc-14\\>/gcc-${KERNEL_CC##*-}/" "${lists[@]}" | tr -s ' \n' '\n' | sed '/^$/d' | sort -u
}

# All that decides what is in the root.  A comment changed in a script does not make a new root.
root_recipe() {
	echo "format 2 $SUITE $DEB_ARCH virtme-ng>=1.41"
	package_list
}

ROOT=$CACHE/root-$(root_recipe | short_hash)
root_ready() { [ -e "$ROOT/usr/lib/lowtail/complete" ]; }

# Where the choice is remembered, for each architecture and suite its own.
CHOICE=$CACHE/kver$VARIANT

# The kernel that set-up chose: KVER when given, else what an earlier run chose.  A second run must
# not move to another kernel because the mirror got a newer one; `make setup UPDATE=1` does.
kernel_stock() {
	if [ -n "${KVER:-}" ]; then
		if [ ! -e "$ROOT/usr/lib/lowtail/kernel-$KVER" ] && [ -e "$CHOICE-$KVER" ]; then
			cat "$CHOICE-$KVER"
		else
			echo "$KVER"
		fi
	elif [ -e "$CHOICE" ]; then
		cat "$CHOICE"
	fi
}

# config_lines NAME: the options of the kernel that KERNEL=NAME asks for.
config_lines() {
	sed -n 's/[[:space:]]*$//; /^CONFIG_.*=/p; /^# CONFIG_.* is not set$/p' "$TOP/virtme/guest.config" "$TOP/virtme/$1.config"
}

# Compilers of the kernels built here.  For one with KASAN, CONFIG_RUST wants clang (init/Kconfig).
# shellcheck disable=SC2034 # used by those who source this
BUILT_CC=(LLVM=1)

# What builds them, as the root has it: other versions make another kernel, a longer list of packages does not.
toolchain() {
	awk '/^Package: / { p = $2 } /^Version: / && p ~ /^(clang|lld|llvm)-[0-9]+$|^(rustc|rust-src|bindgen|pahole)$/ { print p, $2 }' \
		"$ROOT/var/lib/dpkg/status" | sort
}

# 7.3.4 of 7.3.4+deb13-amd64
version_number() { echo "${1%%[+-]*}"; }

# The kernel under test, by its release: the stock one, or with KERNEL=NAME one of ours from the same source.
kernel_chosen() {
	local base
	base=$(kernel_stock)
	if [ -z "${KERNEL:-}" ] || [ -z "$base" ] || ! root_ready; then
		echo "$base"
		return
	fi
	[[ $KERNEL =~ ^[a-z0-9]+$ && $KERNEL != guest && -e $TOP/virtme/$KERNEL.config ]] ||
		die "there is no kernel '$KERNEL'" "choose of: $(cd "$TOP/virtme" && echo *.config | sed 's/guest\.config//; s/\.config//g')"
	echo "$(version_number "$base")-$KERNEL-$({
		echo "format 2 $base ${BUILT_CC[*]}"
		toolchain
		config_lines "$KERNEL"
	} | short_hash)"
}

# Kernels of our own lie beside the roots, since these are made anew when the list of packages changes: built-RELEASE has
# its build tree (kdir), what belongs into /usr/lib/modules/RELEASE (modules) and the name of its source.  enter.sh
# mounts the first two.
built_dir() { echo "$CACHE/built-$1"; }
is_built() { [ -n "$1" ] && [ -e "$(built_dir "$1")/complete" ]; }

# Paths as seen inside the root.
kdir_of() { echo "/usr/src/lowtail/kdir-$1"; }
source_of() { echo "/usr/src/lowtail/src/$(source_name "$1")"; }

# The name of a kernel's source in $CACHE/src, and the folder that is its /usr/lib/modules/KVER.
source_name() {
	if is_built "$1"; then cat "$(built_dir "$1")/source"; else cat "$ROOT/usr/lib/lowtail/kernel-$1"; fi
}
modules_of() {
	if is_built "$1"; then echo "$(built_dir "$1")/modules"; else echo "$ROOT/usr/lib/modules/$1"; fi
}

kernel_ready() {
	[ -n "$1" ] && { is_built "$1" || [ -e "$ROOT/usr/lib/lowtail/kernel-$1" ]; } && [ -e "$CACHE/src/$(source_name "$1")" ]
}
kdir_ready() { [ -n "$1" ] && { is_built "$1" || [ -e "$ROOT/usr/lib/lowtail/kdir-$1" ]; }; }

# kernel_has KVER OPTION: whether a kernel has that option on, built in or as a module.
kernel_has() { grep -qE "^$2=[ym]\$" "$(modules_of "$1")/config"; }

# kernel_cc KVER: the compiler that a kernel was built with, and so its modules are.
kernel_cc() {
	if kernel_has "$1" CONFIG_CC_IS_CLANG; then echo clang; else echo "$KERNEL_CC"; fi
}
