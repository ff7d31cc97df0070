#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The guest's half of boot.sh: run the command and leave its result in files that the host reads.
#
# Console and exit status of vng can be lost with the guest; what counts is DIR/rc, written last and synced.

dir=$1
cd /lowtail || exit 125
: >"$dir/booted"
bash "$dir/cmd" </dev/null 2>&1 | tee "$dir/log"
rc=${PIPESTATUS[0]}
dmesg >"$dir/dmesg"
sync -f "$dir/dmesg"
echo "$rc" >"$dir/rc.tmp"
sync -f "$dir/rc.tmp"
mv "$dir/rc.tmp" "$dir/rc"
