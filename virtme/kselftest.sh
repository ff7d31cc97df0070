#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run the kselftests in a guest:  virtme/kselftest.sh [TEST…]     (results in out/kselftest/TEST.tap and .rc)
#
# One boot runs them all.  A test that takes the guest down with it fails, and the rest get one more boot: a result that
# is not there is a failure, never a pass.  Each test has the time that selftests/settings gives (`timeout=`), and one
# after which the kernel complained is failed whatever it said itself.  What it complained about is in boot-N.complaints,
# a file a boot, by the test that ran; an empty one is a boot without complaints.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

out=$TOP/out/kselftest
timeout=$(sed -n 's/^timeout=//p' "$TOP/selftests/settings" 2>/dev/null || :)
timeout=${timeout:-120}
# A kernel with detectors takes some times as long for everything.
[ -z "${KERNEL:-}" ] || timeout=$((timeout * 4))

# complaints NAME: the complaints of the log on standard input, told, and kept for the boot. True if there are any.
complaints() {
	local found
	if found=$(./complaints.sh); then return 1; fi
	printf '%s\n' "$found" | sed "s/^/$1: /" | tee -a "$log" | sed 's/^/# the kernel: /'
}

guest() {
	local t rc boot=1 log
	# A test that fails is a result, not an error of this script.
	set +e
	cd /lowtail/selftests || exit 125
	while [ -e "$out/boot-$boot.complaints" ]; do boot=$((boot + 1)); done
	log=$out/boot-$boot.complaints
	: >"$log"
	dmesg | complaints "before the tests"
	for t; do
		# A second boot goes on where the first one ended.
		[ ! -e "$out/$t.rc" ] || continue
		: >"$out/$t.started"
		echo "lowtail: kselftest $t" >/dev/kmsg
		echo "# selftests: lowtail: $t"
		timeout -k 5 "$timeout" "./$t" </dev/null 2>&1 | tee "$out/$t.tap" | sed 's/^/# /'
		rc=${PIPESTATUS[0]}
		[ "$rc" != 124 ] || echo "# still running after $timeout s" | tee -a "$out/$t.tap"
		dmesg | sed -n "/lowtail: kselftest ${t//./\\.}\$/,\$p" >"$out/$t.dmesg"
		# Without the mark the log has overflowed, and all of it is this test's.
		[ -s "$out/$t.dmesg" ] || dmesg >"$out/$t.dmesg"
		if complaints "$t" <"$out/$t.dmesg" && [ "$rc" = 0 ]; then rc=1; fi
		echo "$rc" >"$out/$t.rc.tmp"
		sync -f "$out/$t.rc.tmp"
		mv "$out/$t.rc.tmp" "$out/$t.rc"
	done
	exit 0
}

# The programs that the kselftest Makefile would run: known by the same variable, whatever lib.mk is around.
all_tests() {
	make -s --no-print-directory -C "$TOP/selftests" --eval 'lowtail-list: ; @echo $(TEST_PROGS)' lowtail-list |
		tr ' ' '\n' | sed '/^$/d'
}

# totals TEST: passed, failed and skipped of one test.  Its cases count when it gave KTAP, else it counts as one.
totals() {
	local t=$1 rc
	rc=$(cat "$out/$t.rc" 2>/dev/null || echo 125)
	[ -e "$out/$t.tap" ] || : >"$out/$t.tap"
	awk -v rc="$rc" '
		/^not ok/ { failed++; next }
		/^ok .*# *SKIP/ || /^ok .*# *skip/ { skipped++; next }
		/^ok/ { passed++ }
		END {
			if (rc == 4 && passed + failed + skipped == 0) skipped = 1
			else if (rc == 0 && passed + failed + skipped == 0) passed = 1
			else if (rc != 0 && rc != 4 && failed == 0) failed = 1
			print passed + 0, failed + 0, skipped + 0
		}' "$out/$t.tap"
}

# failures TEST: its cases that failed, with the lines around each that tell why: who reads only the end of a log finds them.
failures() {
	awk '
		/^not ok/ { for (i = n > 20 ? n - 20 : 0; i < n; i++) print "    " why[i]; print "    " $0; n = 0; told = 20; next }
		/^ok/ { n = told = 0; next }
		/^#/ && told-- > 0 { print "    " $0; next }
		/^#/ { told = 0; why[n++] = $0 }' "$out/$1.tap"
}

if [ "${1:-}" = --guest ]; then
	out=$2
	shift 2
	guest "$@"
fi

tests=()
if [ ! -e "$TOP/selftests/Makefile" ]; then
	say "selftests/ has no kselftests"
	[ $# = 0 ] || die "there is no kselftest '$1'"
	exit 0
fi
mapfile -t known < <(all_tests)
for t; do
	found=
	for k in "${known[@]}"; do
		[ "$k" != "$t" ] && [ "${k%.*}" != "$t" ] || found=$k
	done
	[ -n "$found" ] || die "there is no kselftest '$t'" "choose of: ${known[*]}"
	tests+=("$found")
done
[ ${#tests[@]} -gt 0 ] || tests=("${known[@]}")
[ ${#tests[@]} -gt 0 ] || exit 0

# Some tests switch faults on with modules that exist for that alone.
if [ -e "$TOP/selftests/faults/build.sh" ]; then
	logged faults "test-only modules" "the test-only modules did not build" "read the lines above" \
		"$TOP/selftests/faults/build.sh"
fi

# A comparison that some tests make where it is there.
if [[ " ${tests[*]} " =~ " floor.py "|" fallback.py " ]] && kernel_has "$(kernel_chosen)" CONFIG_DEBUG_INFO_BTF; then
	logged bpf "the kernel's DCTCP in BPF" "bpf_dctcp did not build" "read the lines above" "$TOP/selftests/bpf_dctcp.sh"
fi

mkdir -p "$out"
rm -f "$out"/boot*.complaints
for t in "${tests[@]}"; do rm -f "$out/$t".{started,tap,rc,dmesg}; done
left=("${tests[@]}")
for boot in 1 2; do
	"$TOP/virtme/boot.sh" -t $((180 + timeout * ${#left[@]})) -- \
		env KERNEL="${KERNEL:-}" bash virtme/kselftest.sh --guest /lowtail/out/kselftest "${left[@]}" || :
	next=()
	for t in "${left[@]}"; do
		[ -e "$out/$t.rc" ] || next+=("$t")
	done
	[ ${#next[@]} -gt 0 ] || break
	left=("${next[@]}")
	# The one that was running when the guest went has had its chance.
	if [ "$boot" = 1 ] && [ -e "$out/${left[0]}.started" ]; then
		say "the guest ended while ${left[0]} ran: it is failed, the rest gets one more boot"
		left=("${left[@]:1}")
		[ ${#left[@]} -gt 0 ] || break
	fi
done

passed=0 failed=0 skipped=0
for t in "${tests[@]}"; do
	read -r p f s < <(totals "$t")
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	[ "$f" = 0 ] || { say "kselftest $t: $f failed (out/kselftest/$t.tap)" && failures "$t"; }
done
if grep -q '^before the tests: ' "$out"/boot-*.complaints 2>/dev/null; then
	failed=$((failed + 1))
	say "kselftest: the kernel complained before any test ran (out/kselftest/boot-*.complaints)"
fi
echo "kselftest: $passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
