#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Two runs' records side by side:  virtme/compare.sh A B  (folders as `make run` fills them; exit 0 same, 1 changed, 2 bad input)

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

for folder in "${1:-}" "${2:-}"; do
	if [ ! -d "$folder" ]; then
		echo "compare: '$folder' is no folder of records: make compare A=one/out B=another/out" >&2
		exit 2
	fi
done
"$TOP/virtme/setup.sh"
"$TOP/virtme/programs.sh"
# Anywhere on the host: the root sees both below /mnt.
a=$(realpath -- "$1") b=$(realpath -- "$2")
exec "$TOP/virtme/enter.sh" -b "$a:/srv" -b "$b:/mnt" -- out/cargo/release/report --compare /srv /mnt
