#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# kmemleak.sh: kmemleak knows of no leaked memory, whatever the tests before it did. On a kernel that
# has kmemleak (make kselftest KERNEL=debug), else skipped. KTAP.

# Called by run_cases, by name.
# shellcheck disable=SC2317
# shellcheck source=selftests/lib.sh
. "$(dirname -- "$0")/lib.sh"

leaks=/sys/kernel/debug/kmemleak

nothing_leaked() {
	leaked "$report"
	! grep . "$report"
}

need grep
[ -e "$leaks" ] || skip_all "this kernel has no kmemleak (make kselftest KERNEL=debug)"
report=$(mktemp)
defer rm -f "$report"
run_cases "nothing leaked:nothing_leaked"
