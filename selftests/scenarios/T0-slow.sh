# shellcheck shell=bash disable=SC2034,SC2154 # scenario and variant are lib.sh's
# SPDX-License-Identifier: GPL-2.0
#
# T0-slow: T0 on a device whose TX completions come 2 ms late: how long the second write of
# a reply is held.
#
# Replies of 3091 + 5 bytes, NODELAY, as in T0. Every completion comes 2 ms after the packet
# (lowtail_faults' `late`), and no ACK comes sooner: packets without data take 5 ms from the
# receiver, requests do not, so that a hold ends by a completion or by the deadline. Each
# connection has a request every 8 ms, so that nothing of a reply is in the device at the next.
# The hold is what a variant takes longer than nodelay, which holds nothing; a part of it is not
# seen, while the receiver is still busy with the first write.
#
# Control: stock must hold for the 2 ms at p50. Void: its hold is outside 1.8 to 2.2 ms, or
#   nodelay counts TCPAutoCorking.
# Goal (issue 4): bounded's hold at p50 and max is at most the deadline, and 10 %.
# Public figures: none; T0's thread has the mechanism, and 40 ms with a wake-up that was lost.

late=2000
ack_delay=5ms
conns=8
rate=1000
duration=3s

# run VARIANT POLICY
run() {
	local corks
	variant=$1
	say "$variant: replies of 3091+5 bytes, $conns connections, $rate requests a second"
	set_sysctl left net.ipv4.tcp_autocork_policy "$2"
	corks=$(counter left TcpExtTCPAutoCorking)
	rpc right --connect 10.0.0.1 --name reply --conns "$conns" --rate "$rate" \
		--duration "$duration" --warmup 500ms --sample 10ms --request 100 --reply 3091+5 --nodelay
	record reply TCPAutoCorking count $(($(counter left TcpExtTCPAutoCorking) - corks))
}

# hold VARIANT PERCENTILE: what it takes longer than nodelay, in us.
hold() {
	awk -v it="$(value "$1" reply "$2")" -v free="$(value nodelay reply "$2")" \
		'BEGIN { printf "%.3f", it - free }'
}

require rpctail "build selftests first"
nic_pair
modprobe sch_htb
modprobe sch_netem
modprobe autocork_policy
modprobe lowtail_faults
# IPv4 packets below 128 bytes; a request has 152.
on right tc qdisc add dev nic root handle 1: htb default 1
for class in 1 2; do
	on right tc class add dev nic parent 1: classid "1:$class" htb rate 10gbit
done
on right tc qdisc add dev nic parent 1:2 netem delay "$ack_delay" limit 10000
on right tc filter add dev nic parent 1: protocol ip u32 match u16 0 0xff80 at 2 flowid 1:2
# The first RTT samples are of requests that overtook an ACK: a loss probe would take it for lost.
set_sysctl left net.ipv4.tcp_early_retrans 0
rpc_server left
settle
on left sysctl -q -w "net.lowtail_faults.late=every 1 delay $late"
deadline=$(on left sysctl -n net.ipv4.tcp_autocork_deadline_us)

for policy in stock nodelay bounded; do
	run "$policy" "$policy"
done

for variant in stock bounded; do
	for p in p50 max; do
		record reply "hold_$p" us "$(hold "$variant" "$p")"
	done
done
variant=-
stock=$(value stock reply hold_p50)
if ! greater "$stock" 1800 || greater "$stock" 2200; then
	void "stock's hold at p50 is $stock us, not the $late us of a completion"
fi
[ "$(value nodelay reply TCPAutoCorking)" = 0 ] || void "nodelay was autocorked"
verdict=within
for p in p50 max; do
	! greater "$(value bounded reply hold_$p)" "$((deadline * 11 / 10))" || verdict="NOT within"
done
finding - meaning "Completions come $late us late. Stock holds the second write for one: $stock us at p50, \
$(value stock reply hold_max) us at the maximum, longer than nodelay. bounded holds it for \
$(value bounded reply hold_p50) us at p50 and $(value bounded reply hold_max) us at the maximum, $verdict its \
deadline of $deadline us and 10 %."
