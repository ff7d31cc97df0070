#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The stress test in a guest:  virtme/stress.sh test | virtme/stress.sh soak MINUTES     (SEED=, CYCLES=)

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

what=${1:-test} minutes=${2:-10}
[[ $minutes =~ ^[1-9][0-9]{0,3}$ ]] || die "MINUTES=$minutes is not a number of minutes" "make soak MINUTES=10"
[[ ${SEED:-} =~ ^[0-9]{0,15}$ ]] || die "SEED=$SEED is not a number" "make ${LOWTAIL_GOAL:-stress} SEED=1"
[[ ${CYCLES:-} =~ ^[0-9]{0,6}$ ]] || die "CYCLES=$CYCLES is not a number" "make ${LOWTAIL_GOAL:-stress} CYCLES=25"

logged faults "test-only modules" "the test-only modules did not build" "read the lines above" \
	"$TOP/selftests/faults/build.sh"
guest=(env "SEED=${SEED:-}" ${CYCLES:+"CYCLES=$CYCLES"} /lowtail/selftests/stress.py)
limit=${LOWTAIL_LIMIT:-600}
# A kernel with detectors takes some times as long for everything.
[ -z "${KERNEL:-}" ] || limit=$((limit * 4))
# Beyond its time a soak needs its last round, and the guest its boot.
case $what in
test) exec "$TOP/virtme/boot.sh" -t "$limit" -- "${guest[@]}" ;;
soak) exec "$TOP/virtme/boot.sh" -t $((minutes * 60 + limit)) -- "${guest[@]}" --minutes "$minutes" ;;
*) die "usage: stress.sh test | soak MINUTES" ;;
esac
