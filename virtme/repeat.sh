#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Virtual time is the same at every run:  virtme/repeat.sh  boots the scenario `repeat` twice, the second time with
# the host's CPUs kept busy, and compares the records to the bit.  KTAP.  Runs inside the root.

set -uo pipefail
cd /lowtail || exit 1
out=out/test/repeat
rm -rf "$out"
mkdir -p "$out"

busy=()
trap '[ ${#busy[@]} = 0 ] || kill "${busy[@]}" 2>/dev/null' EXIT

# run NAME: the records of one run, without the blank array around them.
run() {
	OUT=/lowtail/$out IMAGE_DIR=/lowtail/out/vtime/image-$KVER virtme/vtime.sh repeat >"$out/$1.log" 2>&1 &&
		mv "$out/repeat.json" "$out/$1.json" && [ "$(wc -l <"$out/$1.json")" -gt 20 ]
}

echo "TAP version 13"
echo "1..1"
what="two runs in virtual time give the same records, the second on a busy host"
if ! run first; then
	sed 's/^/# /' "$out/first.log"
	echo "not ok 1 $what # the first run failed"
	exit 1
fi
for _ in $(seq "$(nproc)"); do
	sha256sum </dev/zero >/dev/null &
	busy+=($!)
done
if ! run second; then
	sed 's/^/# /' "$out/second.log"
	echo "not ok 1 $what # the second run failed"
	exit 1
fi
if cmp "$out/first.json" "$out/second.json"; then
	echo "# $(wc -l <"$out/first.json") lines, $(sha256sum <"$out/first.json" | cut -c1-16)"
	echo "ok 1 $what"
else
	diff "$out/first.json" "$out/second.json" | head -n 20 | sed 's/^/# /'
	echo "not ok 1 $what"
	exit 1
fi
