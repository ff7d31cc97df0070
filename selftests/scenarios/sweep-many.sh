# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# sweep-many: sweep.sh with many senders.

NS='128 256'
# shellcheck source=selftests/scenarios/sweep.sh
. /scenarios/sweep.sh
