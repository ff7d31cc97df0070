# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# sweep-fq: sweep.sh with sch_fq at the senders, which paces instead of TCP's own timer.

NS='16 48' QDISC=fq
# shellcheck source=selftests/scenarios/sweep.sh
. /scenarios/sweep.sh
