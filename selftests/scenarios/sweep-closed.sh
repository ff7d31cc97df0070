# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# sweep-closed: sweep.sh with connections that do not wait for each other.

NS='4 16 24 48 128' LOAD=closed
# shellcheck source=selftests/scenarios/sweep.sh
. /scenarios/sweep.sh
