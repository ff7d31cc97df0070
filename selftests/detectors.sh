#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# detectors.sh: each detector of the debug kernel finds a fault planted for it, in C (lowtail_planted.ko) and where it
# looks into compiled code or at locks in Rust as well (lowtail_planted_rust.ko), and
# complaints.sh sees what it says: else a log without complaints would say nothing. Skipped on other
# kernels. The last of the tests, since lockdep is off once it has found something. KTAP.

# Called by run_cases, by name.
# shellcheck disable=SC2317
# shellcheck source=selftests/lib.sh
. "$(dirname -- "$0")/lib.sh"

plant=/sys/module/lowtail_planted/parameters/fault
leaks=/sys/kernel/debug/kmemleak

# found NAME PATTERN COMMAND…: COMMAND commits the fault, and the log then has the pattern.
found() {
	local name=$1 pattern=$2 log
	echo "lowtail: planted fault begins: $name" >/dev/kmsg
	"${@:3}"
	echo "lowtail: planted fault ends: $name" >/dev/kmsg
	log=$(dmesg | sed -n "/planted fault begins: $name\$/,/planted fault ends: $name\$/p" | grep -v 'planted fault')
	grep -E -m1 "$pattern" <<<"$log" || {
		echo "the log has no '$pattern':"
		echo "$log"
		return 1
	}
	! "$here/complaints.sh" <<<"$log" >/dev/null || {
		echo "complaints.sh did not see it"
		return 1
	}
}

# c NAME PATTERN, rust NAME NUMBER PATTERN: a fault of lowtail_planted.ko, of lowtail_planted_rust.ko.
c() { found "$1" "$2" commit "$1"; }
rust() { found "rust-$1" "$3" load_planted "$2"; }
commit() { echo "$1" >"$plant"; }
load_planted() { load lowtail_planted_rust "fault=$1" 2>/dev/null; }

lockdep_is_on() {
	expect "debug_locks" 1 "$(awk '$1 == "debug_locks:" { print $2 }' /proc/lockdep_stats)"
}
out_of_bounds() { c out-of-bounds 'KASAN: slab-out-of-bounds in .*lowtail_planted'; }
use_after_free() { c use-after-free 'KASAN: slab-use-after-free in .*lowtail_planted'; }
shift_too_far() { c shift 'UBSAN: shift-out-of-bounds'; }
list_twice() { c list 'list_del corruption'; }
sleep_in_atomic() { c sleep 'sleeping function called from invalid context'; }
rcu_unprotected() { c rcu 'suspicious RCU usage'; }
lock_inversion() { c inversion 'possible circular locking dependency'; }

leak() {
	local said=0 where
	found leak 'kmemleak: [0-9]+ new suspected' leak_both || said=1
	# The one in Rust is known by its task, since its module is gone again.
	for where in '\[lowtail_planted\]' 'comm "insmod"'; do
		grep -m1 "$where" "$report" || {
			echo "kmemleak does not name $where"
			said=1
		}
	done
	echo clear >"$leaks"
	return "$said"
}
leak_both() {
	commit leak
	load_planted 3
	leaked "$report"
}

rust_use_after_free() { rust use-after-free 1 'KASAN: slab-use-after-free in .*lowtail_planted_rust'; }
rust_sleep() { rust sleep 2 'sleeping function called from invalid context'; }

# The Oops of a panic in Rust ends the task that loads, not the guest.
rust_overflow() {
	local before rc
	before=$(sysctl -n kernel.panic_on_oops)
	sysctl -qw kernel.panic_on_oops=0
	rust overflow 4 'attempt to add with overflow'
	rc=$?
	sysctl -qw "kernel.panic_on_oops=$before"
	return "$rc"
}

need grep awk
zcat /proc/config.gz 2>/dev/null | grep -qx CONFIG_KASAN=y ||
	skip_all "this kernel has no detectors (make kselftest KERNEL=debug)"
report=$(mktemp)
defer rm -f "$report"
need_module lowtail_planted
[ -n "$(module_file lowtail_planted_rust)" ] || skip_all "lowtail_planted_rust.ko is not built (selftests/faults/build.sh)"
load lowtail_planted || exit 1

# A report of lockdep's, and one of KASAN's, ends lockdep: what needs it comes first. Last what leaves a dead task.
run_cases "lockdep is still on after all tests:lockdep_is_on" \
	"DEBUG_ATOMIC_SLEEP finds an allocation that may sleep under a spinlock:sleep_in_atomic" \
	"the same in Rust:rust_sleep" \
	"DEBUG_LIST finds an entry deleted twice:list_twice" \
	"UBSAN finds a shift by more than the type has:shift_too_far" \
	"PROVE_RCU finds a pointer followed outside of a read section:rcu_unprotected" \
	"PROVE_LOCKING finds two locks taken in both orders:lock_inversion" \
	"KASAN finds a write behind an allocation:out_of_bounds" \
	"KASAN finds a read of freed memory:use_after_free" \
	"KASAN finds the same in Rust:rust_use_after_free" \
	"kmemleak finds what nothing points to, in C and in Rust:leak" \
	"RUST_OVERFLOW_CHECKS finds an addition that overflows:rust_overflow"
