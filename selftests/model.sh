#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# model.sh: T1 on paper, checked by machine: in model/*.litmus the wake-up between tcp_push() and
# tcp_wfree() is lost where the file says so, and only there. By herd7, under the kernel's memory
# model, arm64's and RISC-V's. KTAP; exit code 4 without herd7, with the reason.
#
#   KSRC   a kernel source with tools/memory-model (default: the one that set-up unpacked)
#
# Touches nothing. herd7 is in Debian's herdtools7, from forky on. The same by loom, under C11's
# memory model, is in model/ and runs with the other host tests (cargo test -p model).

here=$(cd "$(dirname "$0")" && pwd)
failed=0 passed=0 skipped=0 number=0

memory_model() {
	local place
	for place in "${KSRC:-}" /usr/src/lowtail/src/* /usr/src/lowtail/linux-source-*; do
		if [ -e "$place/tools/memory-model/linux-kernel.cfg" ]; then
			echo "$place/tools/memory-model"
			return
		fi
	done
}

# result STATUS NAME [REASON]: 0 passed, 1 failed, 4 skipped.
result() {
	number=$((number + 1))
	case $1 in
	0) passed=$((passed + 1)) && echo "ok $number $2" ;;
	4) skipped=$((skipped + 1)) && echo "ok $number $2 # SKIP $3" ;;
	*) failed=$((failed + 1)) && echo "not ok $number $2" ;;
	esac
}

# litmus FILE: what herd7 observes is what the file's comment says.
litmus() {
	local file=$1 name wanted seen conf=()
	name=$(basename "$file" .litmus)
	wanted=$(sed -n 's/^ \* Result: //p' "$file")
	if [ "$(head -c 2 "$file")" = 'C ' ]; then
		if [ -z "$lkmm" ]; then
			result 4 "$name is $wanted" "no kernel source with tools/memory-model (KSRC)"
			return
		fi
		conf=(-conf linux-kernel.cfg)
	fi
	seen=$(cd "${lkmm:-/}" && herd7 "${conf[@]}" "$file" 2>&1)
	grep '^Observation' <<<"$seen" | sed 's/^/# /'
	if grep -q "^Observation .* $wanted [0-9]" <<<"$seen"; then
		result 0 "$name is $wanted"
	else
		echo "# ${seen//$'\n'/$'\n# '}"
		result 1 "$name is $wanted"
	fi
}

command -v herd7 >/dev/null || {
	echo "TAP version 13"
	echo "1..0 # SKIP herd7 is not installed (herdtools7, in Debian from forky on)"
	exit 4
}
lkmm=$(memory_model)
tests=("$here"/model/*.litmus)
echo "TAP version 13"
echo "1..${#tests[@]}"
for file in "${tests[@]}"; do
	litmus "$file"
done
echo "# Totals: pass:$passed fail:$failed xfail:0 xpass:0 skip:$skipped error:0"
[ "$failed" = 0 ]
