# shellcheck shell=bash disable=SC2034,SC2154 # what the scenarios use
# SPDX-License-Identifier: GPL-2.0
#
# bottleneck.sh: three senders, one receiver, and between them a router whose egress towards the
# receiver is the bottleneck: 200 Mbit/s, with RED as a marking step. Sourced by the scenarios that
# need it; not a scenario itself.

rate=200mbit
deep=1000000

# link NS PREFIX: a veth from NS to the router, one packet a segment.
link() {
	ip link add "to-$1" netns router type veth peer name nic netns "$1"
	ip -n "$1" addr add "$2.2/24" dev nic
	ip -n router addr add "$2.1/24" dev "to-$1"
	ip -n "$1" link set nic up
	ip -n router link set "to-$1" up
	ip -n "$1" route add default via "$2.1"
	on "$1" ethtool -K nic tso off gso off gro off >/dev/null
	on router ethtool -K "to-$1" tso off gso off gro off >/dev/null
}

# marking BYTES LIMIT: RED as a step: all packets marked once its average, over a
# few packets, is above BYTES; dropped where the queue is longer than LIMIT.
marking() {
	on router tc qdisc replace dev to-receiver parent 1:1 handle 2: red limit "$2" \
		min "$1" max $(($1 + 1)) avpkt 1500 burst $(($1 * 14 / 10 / 1500 + 1)) \
		bandwidth $rate probability 1 ecn
}

# red_counts: packets marked and dropped at the bottleneck so far.
red_counts() {
	on router tc -s qdisc show dev to-receiver | awk '
		/^qdisc/ { red = $2 == "red" }
		red && /dropped/ { sub(",", "", $7); dropped = $7 }
		red && /marked/ { print $2, dropped }'
}

# senders COUNTER: its sum over the three senders.
senders() {
	local s sum=0
	for s in 1 2 3; do
		sum=$((sum + $(counter "s$s" "$1")))
	done
	echo "$sum"
}

# bottleneck: the namespaces router, receiver (10.0.9.2), s1, s2 and s3 (10.0.1.2, ...). $ours is
# our congestion control and $old the one of 2018, empty where the image lacks them.
bottleneck() {
	local s ns
	setup_ns router receiver s1 s2 s3
	on router sysctl -q -w net.ipv4.ip_forward=1
	link receiver 10.0.9
	for s in 1 2 3; do
		link "s$s" "10.0.$s"
	done
	for ns in receiver s1 s2 s3; do
		set_sysctl "$ns" net.ipv4.tcp_no_metrics_save 1
	done
	on router tc qdisc replace dev to-receiver root handle 1: tbf rate $rate burst 3000 limit $deep
	modprobe tcp_dctcp
	ours='' old=''
	if modprobe -q tcp_dctcp_floor; then
		ours=dctcp_floor
	else
		finding - note "tcp_dctcp_floor.ko is not in this image"
	fi
	! modprobe -q tcp_dctcp_2018 || old=dctcp_2018
	# A child namespace may only choose what the first one allows.
	sysctl -q -w net.ipv4.tcp_allowed_congestion_control="reno cubic dctcp $ours $old"
}
