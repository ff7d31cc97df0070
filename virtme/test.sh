#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Everything that must pass: the host's unit tests, the lints, virtual time's repeatability, the kselftests in a guest.  Run by `make test`.
#
# A stage that fails does not hide the next.  The last line is the sum: N passed, N failed, N skipped.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

passed=0 failed=0 skipped=0
add() {
	passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

log=$TOP/out/test
mkdir -p "$log"

# stage NAME CMD…: run it, shown and kept; its exit status in $rc.
stage() {
	local name=$1
	shift
	say "$name"
	rc=0
	"$@" 2>&1 | tee "$log/$name.log" || rc=$?
}

stage host-test "$TOP/virtme/enter.sh" -- cargo test --locked --offline --manifest-path selftests/Cargo.toml --no-fail-fast
read -r p f s < <(awk '/^test result:/ { p += $4; f += $6; s += $8 } END { print p + 0, f + 0, s + 0 }' "$log/host-test.log")
# A build that fails ran no test: that is a failure too.
[ "$rc" = 0 ] || [ "$f" != 0 ] || f=1
add "$p" "$f" "$s"

# ktap NAME CMD…: a stage whose results are lines of KTAP.
ktap() {
	stage "$@"
	read -r p f s < <(awk '/^ok/ { p++ } /^not ok/ { f++ } END { print p + 0, f + 0, 0 }' "$log/$1.log")
	[ "$rc" = 0 ] || [ "$f" != 0 ] || f=1
	add "$p" "$f" "$s"
}

ktap lint "$TOP/virtme/enter.sh" -- virtme/lint.sh
ktap preflight "$TOP/virtme/enter.sh" -- selftests/preflight.sh
ktap repeat "$TOP/virtme/enter.sh" -- virtme/repeat.sh

stage kselftest "$TOP/virtme/kselftest.sh"
read -r p f s < <(awk '/^kselftest: [0-9]+ passed/ { p = $2; f = $4; s = $6 } END { print p + 0, f + 0, s + 0 }' "$log/kselftest.log")
[ "$rc" = 0 ] || [ "$f" != 0 ] || f=1
add "$p" "$f" "$s"

if [ "$failed" != 0 ]; then
	say "what failed (what the kselftests said of it stands above)"
	grep -hE '^not ok|^test .*FAILED$|^lowtail: .*(error|failed)' "$log"/{host-test,lint,preflight,repeat}.log || :
	sed -n 's/.*kselftest \([^ ]*\): \([0-9]* failed\).*/kselftest \1: \2/p' "$log/kselftest.log"
fi
say "logs: out/test, out/kselftest"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
