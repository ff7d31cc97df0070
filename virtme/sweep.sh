#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The four sweeps, boot after boot:  virtme/sweep.sh [SEED…]    (records in out/sweep/SEED, the tables in out/sweep/table.md)
#
# One boot says little of what is rare: a lost last packet, a timer.  Each seed deals that anew, and the tables give
# means, extremes, and what differs by more than the boots do.  Started again it goes on after the last whole scenario;
# `rm -r out/sweep` begins anew.  Runs inside the Debian root (virtme/enter.sh).

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

scenarios=(sweep-many sweep-closed sweep-fq sweep)
dir=$TOP/out/sweep
seeds=("$@")
[ $# -gt 0 ] || seeds=(1 2 3 4 5 6 7 8)
tables=()
for seed in "${seeds[@]}"; do
	mkdir -p "$dir/$seed"
	for s in "${scenarios[@]}"; do
		tables+=("$dir/$seed/$s.json")
		[ ! -e "$dir/$seed/$s.ok" ] || continue
		SEED=$seed OUT=$dir/$seed IMAGE_DIR=$TOP/out/vtime/image-$KVER LOWTAIL_LIMIT=${LOWTAIL_LIMIT:-1500} \
			"$TOP/virtme/vtime.sh" "$s" || die "$s with seed $seed failed" "see out/sweep/$seed/vtime/$s.console"
		: >"$dir/$seed/$s.ok"
	done
done
"$TOP/selftests/sweep_table.py" "${tables[@]}" >"$dir/table.md.tmp"
mv "$dir/table.md.tmp" "$dir/table.md"
say "out/sweep/table.md: ${#seeds[@]} boots"
cat "$dir/table.md"
