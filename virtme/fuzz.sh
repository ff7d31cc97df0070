#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every fuzz target for its share of MINUTES, from SEED on; runs inside the root:  make fuzz MINUTES=10 SEED=1
#
# Targets are the tests named fuzz_*.  What fails is in selftests/*/corpus/, which every later run begins with.

set -uo pipefail
cd /lowtail/selftests || exit 1

[[ ${MINUTES:-} =~ ^[1-9][0-9]*$ ]] || {
	echo "fuzz: MINUTES=${MINUTES:-}: give a whole number of minutes, as in make fuzz MINUTES=10" >&2
	exit 2
}
seed=${SEED:-$(date +%s)}
[[ $seed =~ ^[0-9]+$ ]] || {
	echo "fuzz: SEED=$seed: give a whole number" >&2
	exit 2
}
cargo=(cargo test -q --locked --offline --no-fail-fast -p host -p rpctail -p report -p oracle)

targets=$("${cargo[@]}" -- --list fuzz_ | grep -c '\<fuzz_[a-z_]*: test$') || {
	echo "fuzz: the targets did not build: see above" >&2
	exit 1
}
seconds=$((MINUTES * 60 / targets))
[ "$seconds" -gt 0 ] || seconds=1
echo "fuzz: $targets targets, $seconds s each, SEED=$seed"
FUZZ_SEED=$seed FUZZ_SECONDS=$seconds "${cargo[@]}" -- --test-threads=1 fuzz_
rc=$?
if [ "$rc" = 0 ]; then
	echo "fuzz: nothing found, SEED=$seed"
else
	echo "fuzz: see above; what failed is kept in selftests/*/corpus/: git status shows it" >&2
fi
exit "$rc"
