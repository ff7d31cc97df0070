#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What a kernel's log complains about:  dmesg | complaints.sh     prints it; exit status 1 when there is anything
#
# Every test's last case and the runner ask here.  Left out are the lines that complaints.allowed has a reason for, and
# what stands between the marks of detectors.sh, which plants faults to see them found.

# Taints are no complaint: the modules come from outside the tree.
complaints='BUG:|BUG at|WARNING:|Oops|general protection|Kernel panic|panicked at
INFO: task .* blocked|rcu: INFO:|rcu: .*starved|self-detected stall|soft lockup|hard LOCKUP|page allocation failure
possible circular|possible recursive|lock inversion|inconsistent .*lock|suspicious RCU usage|lock held when returning
sleeping function called|scheduling while atomic|DEBUG_LOCKS_WARN_ON|locks held|held lock freed|non-static key
refcount_t:|list_(add|del) corruption|ODEBUG:|KASAN:|KCSAN:|UBSAN:
kmemleak: [0-9]+ new|kmemleak: .*disabled|ref_tracker: .*leaked|unregister_netdevice: waiting'

found=$(sed '/lowtail: planted fault begins/,/lowtail: planted fault ends/d' | grep -E "$complaints" |
	grep -vEf <(grep -vE '^(#|$)' "${BASH_SOURCE[0]%.sh}.allowed"))
[ -z "$found" ] || {
	printf '%s\n' "$found"
	exit 1
}
