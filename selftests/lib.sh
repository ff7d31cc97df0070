# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the tests in shell share: KTAP, finding and loading the modules, namespaces, and the kernel's
# log as the last case. Sourced, never run.
#
# A test is a list of functions, `run_cases NAME:FUNCTION…`. A case passes by returning 0; what it
# prints is diagnosis. `void REASON` is for a control that did not show the fault: a failure, not a
# skip. What a test changes it undoes in `defer`.

KSFT_SKIP=4
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
me=$(basename -- "$0")

deferred=()

# defer COMMAND…: done at the end, the last first.
defer() {
	deferred+=("$(printf '%q ' "$@")")
}

finish() {
	local i
	for ((i = ${#deferred[@]} - 1; i >= 0; i--)); do
		eval "${deferred[i]}" >/dev/null 2>&1
	done
}
trap finish EXIT

skip_all() {
	echo "TAP version 13"
	echo "1..0 # SKIP $*"
	exit "$KSFT_SKIP"
}

# bail_out REASON: the test is failed, since what it is about is here and cannot be tried.
bail_out() {
	printf 'TAP version 13\n1..1\nnot ok 1 %s\n' "$*"
	exit 1
}

# need PROGRAM…: root, and these programs.
need() {
	local program
	[ "$(id -u)" = 0 ] || skip_all "root is needed"
	for program; do
		command -v "$program" >/dev/null || skip_all "$program is not installed"
	done
}

# module_file NAME: the file of a module under test, or of a test-only one; nothing when only modprobe
# might know it.
module_file() {
	local place built
	built=$here/../out/kbuild/$(uname -r)
	for place in "${LOWTAIL_KO:-}" "$here/.." "$built" "$built"-{faults,beside,detectors}; do
		if [ -n "$place" ] && [ -e "$place/$1.ko" ]; then
			echo "$place/$1.ko"
			return
		fi
	done
	modinfo -n "$1" 2>/dev/null
}

# need_module NAME…: the files exist; the modules are not loaded now, and are again what they were
# at the end.
need_module() {
	local name
	for name; do
		[ -n "$(module_file "$name")" ] ||
			skip_all "$name.ko is neither built here nor installed (make modules)"
		if loaded "$name"; then
			# Sockets of the test before may still be closing.
			wait_for 20 rmmod "$name" >/dev/null 2>&1 || bail_out "$name is in use"
			defer insmod "$(module_file "$name")"
		fi
		defer rmmod "$name"
	done
}

loaded() {
	[ -d "/sys/module/$1" ]
}

# load NAME [PARAMETER=VALUE…]
load() {
	insmod "$(module_file "$1")" "${@:2}"
}

# expect WHAT WANTED SEEN
expect() {
	[ "$2" = "$3" ] || {
		echo "$1: '$3', should be '$2'"
		return 1
	}
}

# refused WHAT ERROR COMMAND…: the command fails, and says so.
refused() {
	local what=$1 error=$2 said
	shift 2
	if said=$("$@" 2>&1); then
		echo "$what was not refused"
		return 1
	fi
	case $said in
	*"$error"*) ;;
	*)
		echo "$what: refused with '$said', should say '$error'"
		return 1
		;;
	esac
}

void() {
	echo "void: $*"
	return 1
}

# wait_for SECONDS COMMAND…: until it succeeds.
wait_for() {
	local end=$((SECONDS + $1))
	until "${@:2}"; do
		if [ "$SECONDS" -ge "$end" ]; then
			echo "after $1 s still not: ${*:2}"
			return 1
		fi
		sleep 0.1
	done
}

no_complaints() {
	local log rc
	log=$(mktemp)
	dmesg >"$log"
	# Without the mark the log has overflowed, and all of it is ours.
	! grep -qF "$mark" "$log" || sed -i "1,/$mark/d" "$log"
	"$here/complaints.sh" <"$log"
	rc=$?
	rm -f "$log"
	return "$rc"
}

# leaked FILE: what kmemleak thinks is leaked goes there. It reports what is older than 5 s, and what
# changed since its last look only at the next.
leaked() {
	local i
	for i in 1 2; do
		sleep 6
		echo scan >/sys/kernel/debug/kmemleak
	done
	cat /sys/kernel/debug/kmemleak >"$1"
}

# run_cases NAME:FUNCTION…: the whole of a test, to its exit status.
run_cases() {
	local case number=0 passed=0 said rc began
	# A test that needs no guest has no business in the log of the kernel it runs on.
	if [ -z "${host_only:-}" ]; then
		mark="$me begins ($$)"
		echo "lowtail: $mark" >/dev/kmsg
		set -- "$@" "the kernel's log has no complaint:no_complaints"
	fi
	echo "TAP version 13"
	echo "1..$#"
	for case; do
		number=$((number + 1))
		said=$(mktemp)
		began=${EPOCHREALTIME/./}
		# In this shell, for what a case leaves to the next; errors are the functions' own.
		"${case##*:}" >"$said" 2>&1
		rc=$?
		if [ "$rc" = 0 ]; then
			passed=$((passed + 1))
			echo "ok $number ${case%:*}"
		else
			echo "not ok $number ${case%:*}"
		fi
		sed 's/^/#   /' "$said"
		echo "#   took $(((${EPOCHREALTIME/./} - began) / 1000)) ms"
		rm -f "$said"
	done
	echo "# Totals: pass:$passed fail:$((number - passed)) xfail:0 xpass:0 skip:0 error:0"
	[ "$passed" = "$number" ]
	exit
}
