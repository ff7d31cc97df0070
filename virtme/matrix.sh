#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every kernel that README names, every suite that it can run:  virtme/matrix.sh [KERNEL…]    (records in out/matrix/)
#
# A kernel is a line of `kernels`: how set-up is told of it, and the suites it cannot run with the reason.  A cell is
# what a record says, and a record is written here from what a build or a kselftest left: ok, failed or
# skipped(reason).  A kernel that was not asked for this time keeps its records; one that has none shows as `-`.
#
# Exit: 0 no cell of those asked for failed; 1 one did.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

suites=(build preflight load select params floor same pacing seen autocork bounded splice modversions detectors)

# name|settings of set-up, as make takes them|suite=reason;…
kernels() {
	cat <<-'END'
		7.3-amd64|KVER=7.3|
		7.3-arm64|KVER=7.3 LOWTAIL_ARCH=arm64|preflight=the same script as on amd64
		7.2-amd64|KVER=7.2|
		7.2-sid|KVER=7.2 LOWTAIL_SUITE=sid|
		7.3-debug|KVER=7.3 KERNEL=debug|preflight=the same script as on amd64
		7.3-modversions|KVER=7.3 KERNEL=modversions|preflight=the same script as on amd64
	END
}

dir=$TOP/out/matrix
mkdir -p "$dir"

# The set-up's own jq, whichever architecture the kernel at hand has.
jq_in_root() { LOWTAIL_ARCH=amd64 LOWTAIL_SUITE=trixie KERNEL='' KVER='' "$TOP/virtme/enter.sh" -- jq "$@"; }

# record KERNEL SUITE STATUS DETAIL: one object of KERNEL.records, a line each, until it is whole.
record() {
	jq_in_root -nc '$ARGS.named' --arg kernel "$1" --arg suite "$2" --arg status "$3" \
		--arg detail "$4" >>"$dir/$1.records"
}

# of_suite SUITE LOG: status and detail from what kselftest.sh left.
of_suite() {
	local tap rc f
	for f in "$TOP/out/kselftest/$1".{sh,py}; do
		[ -e "$f.started" ] || continue
		tap=$f.tap
		rc=$(cat "$f.rc" 2>/dev/null || echo none)
	done
	case ${rc:=none} in
	none) echo "failed no result: $(sed -n 's/^lowtail: error: //p' "$2" | tail -n 1 | grep . || echo 'the guest ended')" ;;
	4) echo "skipped $(sed -n 's/^1\.\.0 # SKIP //p' "$tap" | sed -n 1p)" ;;
	0) awk '/^ok .*# *SKIP/ { s++; next } /^ok/ { p++ } END { print "ok " p + 0 " cases" (s ? ", " s " skipped" : "") }' "$tap" ;;
	*) echo "failed exit $rc: $(sed -n 's/^not ok [0-9]* *//p' "$tap" | paste -sd';')" ;;
	esac
}

# try_kernel NAME SETTINGS SKIPS
try_kernel() {
	local name=$1 skips=$3 s status detail run=() reason
	unset LOWTAIL_ARCH LOWTAIL_SUITE KERNEL KVER
	# shellcheck disable=SC2086,SC2163 # NAME=VALUE, some of them
	export $2
	: >"$dir/$name.records"
	say "matrix: $name"
	if "$TOP/virtme/setup.sh" && "$TOP/virtme/modules.sh" >"$dir/$name.build.log" 2>&1; then
		record "$name" build ok "$(sed -n 's/^preflight: //p' "$dir/$name.build.log" | sed -n 1p)"
	else
		record "$name" build failed "$(grep -E 'error|preflight' "$dir/$name.build.log" | sed -n 1p)"
		for s in "${suites[@]:1}"; do record "$name" "$s" skipped "not built"; done
		return
	fi
	for s in "${suites[@]:1}"; do
		reason=$(tr ';' '\n' <<<"$skips" | sed -n "s/^$s=//p")
		if [ -n "$reason" ]; then
			record "$name" "$s" skipped "$reason"
		else
			run+=("$s")
		fi
	done
	if [ "${run[0]}" = preflight ]; then
		if "$TOP/virtme/enter.sh" -- selftests/preflight.sh >"$dir/$name.preflight.tap" 2>&1; then
			record "$name" preflight ok "$(grep -c '^ok' "$dir/$name.preflight.tap") cases"
		else
			record "$name" preflight failed "$(sed -n 's/^not ok [0-9]* *//p' "$dir/$name.preflight.tap" | paste -sd';')"
		fi
		run=("${run[@]:1}")
	fi
	# What another kernel left is no result of this one, should this one's tests not even begin.
	rm -rf "$TOP/out/kselftest"
	"$TOP/virtme/kselftest.sh" "${run[@]}" >"$dir/$name.kselftest.log" 2>&1 || :
	for s in "${run[@]}"; do
		read -r status detail < <(of_suite "$s" "$dir/$name.kselftest.log")
		record "$name" "$s" "$status" "$detail"
	done
	rm -rf "$dir/$name.kselftest"
	[ ! -d "$TOP/out/kselftest" ] || cp -r "$TOP/out/kselftest" "$dir/$name.kselftest"
}

names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(kernels | cut -d'|' -f1)
failed=0
for want in "${names[@]}"; do
	line=$(kernels | awk -F'|' -v want="$want" '$1 == want')
	[ -n "$line" ] || die "the matrix has no kernel '$want'" "choose of: $(kernels | cut -d'|' -f1 | paste -sd' ')"
	IFS='|' read -r name settings skips <<<"$line"
	(try_kernel "$name" "$settings" "$skips")
	jq_in_root -s . <"$dir/$name.records" >"$dir/$name.json.tmp"
	mv "$dir/$name.json.tmp" "$dir/$name.json"
	rm -f "$dir/$name.records"
	[ "$(jq_in_root '[.[] | select(.status == "failed")] | length' <"$dir/$name.json")" = 0 ] || failed=1
done

# The table and what is to be said of its cells, out of the records alone.
cat "$dir"/*.json | jq_in_root -rs --arg suites "${suites[*]}" --arg kernels "$(kernels | cut -d'|' -f1 | paste -sd' ')" '
	add as $r | ($suites / " ") as $s | ($kernels / " ") as $k |
	(["kernel"] + $s), ($k[] as $n | [$n] + [$s[] as $x | [$r[] | select(.kernel == $n and .suite == $x) | .status] | first // "-"]) | @tsv' |
	awk -F'\t' '{ printf "%-15s", $1; for (i = 2; i <= NF; i++) printf " %-11s", $i; print "" }'
cat "$dir"/*.json | jq_in_root -rs 'add[] | select(.status != "ok" or .suite == "build") | "\(.kernel) \(.suite): \(.status): \(.detail)"'
exit "$failed"
