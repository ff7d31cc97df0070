# shellcheck shell=bash disable=SC2034 # scenario and variant are lib.sh's
# SPDX-License-Identifier: GPL-2.0
#
# cost: what the hook on tcp_push() costs, in instructions.
#
# One connection over loopback, 64-byte requests and replies back to back, NODELAY. In virtual
# time an instruction is a nanosecond, so the mean time of a transaction is the number of
# instructions of both ends and of the network between them, and its growth is two sends' worth
# of hook. Left alone (policy stock, or nodelay on sockets without NODELAY) and covered.
#
# Control: a kprobe event on the same function, filtered so that it records nothing, must cost
#   something. Void: it does not. Limits (issue 4): 1 % left alone, 1.5 % covered.
# Public figures: none.

duration=${DURATION:-500ms}

# transaction VARIANT NODELAY: the mean transaction, in ns.
transaction() {
	variant=$1
	rpc lone --connect 127.0.0.1 --name transaction --duration "$duration" --warmup 50ms --sample 0 \
		--request 64 --reply 64 "--nodelay=$2"
	record transaction mean ns "$(value "$1" transaction replies |
		awk -v ms="${duration%ms}" '{ printf "%.1f", ms * 1e6 / $1 }')"
}

# cost VARIANT CONTROL: the growth in percent.
cost() {
	variant=$1
	record transaction cost percent "$(awk -v a="$(value "$2" transaction mean)" \
		-v b="$(value "$1" transaction mean)" 'BEGIN { printf "%.2f", 100 * (b - a) / a }')"
}

require rpctail "build selftests first"
setup_ns lone
rpc_server lone
settle

transaction without both
transaction without-nagle none

mount -t tracefs tracefs /sys/kernel/tracing
echo 'p:lowtail/push tcp_push flags=%si:s32' >/sys/kernel/tracing/kprobe_events
echo 'flags == 12345' >/sys/kernel/tracing/events/lowtail/push/filter
echo 1 >/sys/kernel/tracing/events/lowtail/push/enable
transaction kprobe both
echo 0 >/sys/kernel/tracing/events/lowtail/push/enable

policies >/dev/null
set_sysctl lone net.ipv4.tcp_autocork_policy stock
transaction stock both
set_sysctl lone net.ipv4.tcp_autocork_policy nodelay
transaction nodelay both
transaction nodelay-left-alone none
set_sysctl lone net.ipv4.tcp_autocork_policy bounded
transaction bounded both

for v in kprobe stock nodelay bounded; do
	cost $v without
done
cost nodelay-left-alone without-nagle

variant=-
greater "$(value kprobe transaction cost)" 0 || void "a kprobe on tcp_push() costs nothing here"
finding - meaning "Instructions added to a transaction of $(value without transaction mean): \
left alone $(value nodelay-left-alone transaction cost) %, covered $(value nodelay transaction cost) %, \
bounded $(value bounded transaction cost) %, a kprobe that records nothing $(value kprobe transaction cost) %."
