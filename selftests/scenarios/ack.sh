# shellcheck shell=bash disable=SC2034,SC2154 # scenario and variant are lib.sh's
# SPDX-License-Identifier: GPL-2.0
#
# ack: what dctcp_floor costs in instructions, beside the kernel's own dctcp in C.
#
# Two namespaces with a veth between them, one packet a segment. In virtual time an instruction is a
# nanosecond, and both loads keep the CPU busy, so that time divided by segments (or RPCs) is the number
# of instructions of all that happens for one: the application, sending, receiving, the ACK, and the
# congestion control's part in them. QEMU counts them one by one as well (virtme/count.c), so that each
# function's share is known: `own` is the module's of that congestion control, `tcp` that and all
# functions of core TCP, `all` everything, the applications' start and end included.
#
# Flows:
#   bulk   a netperf stream, at first without marks, then (bulk-marked) with a CE mark on the last
#          packet of every 16th write, by selftests/faults
#   rpc    RPCs of 64 and 64, 100 and 3096, 100 and 14480 bytes, back to back
#
# Control: stock dctcp runs twice, first and last; its two results say how far apart equal things are.
#   Void: stock's own two runs differ by more than 1 % (bulk: 3 %, as the receiver decides how many
#   segments it acknowledges at once), or no CE mark was seen.
# Limit: 1.00 times stock's. As stock's own runs differ by some tenths of a percent, the scenario fails
# at 1.005.
# Public figures: none.

# acks: segments that reached the sender so far.
acks() {
	counter left TcpInSegs
}

# counted FLOW UNITS: what ran between the last two marks was FLOW, so many segments or RPCs.
counted() {
	part=$((part + 2))
	[ "$variant" != warm-up ] || return 0
	record "$1" part part $((part - 1))
	record "$1" units units "$2"
}

# bulk FLOW: one stream.
bulk() {
	local flow=$1 before mbps
	before=$(acks)
	mark
	mbps=$(on left netperf -H 10.0.0.2 -4 -t TCP_STREAM -l "-$volume" -P 0 -- -m 16384 |
		awk 'NF == 5 { print $5 }')
	mark
	counted "$flow" $((volume / 1448))
	record "$flow" acks count $(($(acks) - before))
	record "$flow" instructions_per_segment ns "$(awk -v mbps="$mbps" 'BEGIN { printf "%.1f", 1448 * 8e3 / mbps }')"
}

# rpcs REQUEST REPLY: the mean RPC.
rpcs() {
	local flow=rpc:$1+$2
	mark
	rpc left --connect 10.0.0.2 --name "$flow" --duration "$duration" --warmup 50ms --sample 0 \
		--request "$1" --reply "$2" --nodelay
	mark
	counted "$flow" "$(value "$variant" "$flow" replies)"
	record "$flow" instructions_per_rpc ns "$(value "$variant" "$flow" replies |
		awk -v ms="${duration%ms}" '{ printf "%.1f", ms * 1e6 / $1 }')"
}

# all VARIANT CC
all() {
	local ns servers
	variant=$1
	say "$variant"
	for ns in left right; do
		set_sysctl "$ns" net.ipv4.tcp_congestion_control "$2"
	done
	on right netserver -4 -D >/dev/null 2>&1 &
	servers=$!
	ip netns exec right rpctail server >/dev/null &
	sleep 1
	bulk bulk
	on left sysctl -q -w "net.lowtail_faults.ce=every 16"
	before=$(counter right IpExtInCEPkts)
	bulk bulk-marked
	record bulk-marked marked count $(($(counter right IpExtInCEPkts) - before))
	on left sysctl -q -w net.lowtail_faults.ce=off
	rpcs 64 64
	rpcs 100 3096
	rpcs 100 14480
	kill "$servers" $!
	wait "$servers" $! 2>/dev/null || :
}

# times A B FLOW METRIC: how many times B's figure A's is.
times() {
	awk -v a="$(value "$1" "$3" "$4")" -v b="$(value "$2" "$3" "$4")" 'BEGIN { printf "%.4f", a / b }'
}

modprobe tcp_dctcp
modprobe tcp_dctcp_floor
modprobe lowtail_faults
setup_ns left right
ip link add nic netns left type veth peer name nic netns right
i=0
for ns in left right; do
	i=$((i + 1))
	ip -n $ns addr add "10.0.0.$i/24" dev nic
	ip -n $ns link set nic up gso_max_segs 1
	on $ns ethtool -K nic tso off gso off gro off >/dev/null
	set_sysctl $ns net.ipv4.tcp_no_metrics_save 1
done
sysctl -q -w net.ipv4.tcp_allowed_congestion_control="reno cubic dctcp dctcp_floor"
settle

# The first run would pay for what every later one finds ready.
part=0
volume=3000000 duration=20ms
all warm-up dctcp
volume=30000000 duration=100ms
all dctcp dctcp
all dctcp_floor dctcp_floor
all dctcp-again dctcp

flows=(bulk bulk-marked rpc:64+64 rpc:100+3096 rpc:100+14480)
text='' dear=''
for flow in "${flows[@]}"; do
	metric=instructions_per_segment far=0.03
	[[ $flow = bulk* ]] || metric=instructions_per_rpc far=0.01
	variant=dctcp_floor
	record "$flow" times ratio "$(times dctcp_floor dctcp "$flow" "$metric")"
	variant=dctcp-again
	record "$flow" times ratio "$(times dctcp-again dctcp "$flow" "$metric")"
	! greater "$(value dctcp_floor "$flow" times)" 1.005 || dear="$dear $flow"
	text="$text${text:+, }$flow $(value dctcp_floor "$flow" times) (stock again $(value dctcp-again "$flow" times))"
	awk -v r="$(value dctcp-again "$flow" times)" -v far=$far 'BEGIN { exit !(r > 1 - far && r < 1 + far) }' ||
		void "stock's two runs of $flow differ by more than $far"
done
[ "$(value dctcp bulk-marked marked)" != 0 ] || void "no packet was marked"
variant=-
finding - meaning "dctcp_floor's instructions as a multiple of dctcp's, all included: $text. \
Stock's: $(value dctcp bulk instructions_per_segment) a segment of a \
bulk flow, $(value dctcp rpc:64+64 instructions_per_rpc) an RPC of 64 and 64 bytes."
# For count.c's addresses.
awk '$2 ~ /[tT]/ { print "sym", $1, $3, $4 }' /proc/kallsyms >&3
[ -z "$dear" ] || {
	echo "more than 1.005 times stock's instructions:$dear" >&2
	exit 1
}
