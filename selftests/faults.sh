#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# faults.sh: each fault of lowtail_faults.ko injects what it says, and no more; and dctcp_2018 differs
# from dctcp where it should. KTAP; exit code 4 where it cannot run, with the reason.

cd "$(dirname "$0")" || exit 1
exec python3 faults/test.py
