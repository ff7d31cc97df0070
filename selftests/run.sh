#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What kselftest's runner does, for machines without the kernel's source: runs the tests named, each
# within settings' timeout, indents what they print, and adds their verdicts up as KTAP.

cd -- "$(dirname -- "$0")" || exit
limit=$(sed -n 's/^timeout=//p' settings)
number=0 passed=0 failed=0 skipped=0
echo "TAP version 13"
echo "1..$#"
for test; do
	number=$((number + 1))
	began=$(date +%s)
	echo "# selftests: lowtail: $test"
	timeout -k 5 "$limit" "./$test" 2>&1 | sed -u 's/^/# /'
	rc=${PIPESTATUS[0]}
	took="$(($(date +%s) - began)) s"
	case $rc in
	0)
		passed=$((passed + 1))
		echo "ok $number selftests: lowtail: $test"
		;;
	4)
		skipped=$((skipped + 1))
		echo "ok $number selftests: lowtail: $test # SKIP"
		;;
	124 | 137)
		failed=$((failed + 1))
		echo "not ok $number selftests: lowtail: $test # TIMEOUT $limit seconds"
		;;
	*)
		failed=$((failed + 1))
		echo "not ok $number selftests: lowtail: $test # exit=$rc"
		;;
	esac
	echo "# $test took $took"
done
echo "# Totals: pass:$passed fail:$failed xfail:0 xpass:0 skip:$skipped error:0"
[ "$failed" = 0 ]
