# shellcheck shell=bash disable=SC2034,SC2154 # scenario and variant are lib.sh's
# SPDX-License-Identifier: GPL-2.0
#
# T4-loss: losses that a floor of 2 packets can tell from a window of 1.
#
# T4's network, marking and senders at 100 Mbit/s, and nothing but 100 KB RPCs back to back on 12
# connections, which keep the marking step passed and so every window at its least. selftests/faults
# loses packets inside the senders.
#
# Regimes, the word after the colon in the flow's name:
#   clean    no losses
#   bursts   one packet in 200, and one retransmission in 4: what is lost once is likely to be lost again
#   lone     one in 10 of the packets that are sent when nothing else is in flight
#
# A loss at a window of 2 brings stock to a window of 1: the retransmission is alone, and if that is
# lost too, a timer of 200 ms or more is all that is left. Under the floor a second packet goes with it,
# and its SACK tells of the loss. What no floor mends is `lone`: the last packet of a reply that happens
# to be sent alone. Replies are long here because in short ones (T4's 10 KB, 8 packets) that last packet
# is most of what there is to be seen, under any window.
#
# Control: stock dctcp in the same boot. Void: it was never seen below 2 packets in `bursts`, had no
#   timeout there, or the faults lost nothing.
# Public figures: T4's.

# shellcheck source=selftests/scenarios/bottleneck.sh
. /scenarios/bottleneck.sh

rate=100mbit
step=30000
conns=12

# faults SWITCH=PLAN...: in all senders.
faults() {
	local s plan
	for s in 1 2 3; do
		for plan; do
			on "s$s" sysctl -q -w "net.lowtail_faults.$plan"
		done
	done
}

# lost SWITCH: packets that it has taken since it was set, over all senders.
lost() {
	local s
	for s in 1 2 3; do
		on "s$s" cat /proc/net/lowtail_faults
	done | awk -v name="$1_hit" '$1 == name { sum += $2 } END { print sum + 0 }'
}

# losing N: each sender loses one of its packets in N at random; 0: none.
losing() {
	local s
	for s in 1 2 3; do
		on router tc qdisc del dev "to-s$s" clsact 2>/dev/null || :
		[ "$1" = 0 ] && continue
		on router tc qdisc add dev "to-s$s" clsact
		on router tc filter add dev "to-s$s" ingress matchall \
			action gact ok random netrand drop "$1"
	done
}

# run REGIME DURATION CC RANDOM PLAN...
run() {
	local regime=$1 duration=$2 random=$4 servers=() ns timeouts load
	variant=$3
	say "$regime, $variant"
	for ns in receiver s1 s2 s3; do
		set_sysctl "$ns" net.ipv4.tcp_congestion_control "$variant"
		ip netns exec "$ns" rpctail server --sample 10ms >/dev/null &
		servers+=($!)
	done
	marking "$step" "$deep"
	timeouts=$(senders TcpExtTCPTimeouts)
	rpc receiver --connect 10.0.1.2 --connect 10.0.2.2 --connect 10.0.3.2 \
		--duration "$duration" --warmup 150ms --sample 50ms --nodelay \
		--flow "name=100KB:$regime,conns=$conns,request=100,reply=100K" &
	load=$!
	# A SYN-ACK that is lost would be another story.
	sleep 0.1
	losing "$random"
	faults "${@:5}"
	wait "$load"
	[ "$regime" != bursts ] || record "100KB:bursts" lost_retransmissions count "$(lost rexmit)"
	[ "$regime" != lone ] || record "100KB:lone" lost_alone count "$(lost lone)"
	faults lone=off rexmit=off
	losing 0
	record "100KB:$regime" timeouts count $(($(senders TcpExtTCPTimeouts) - timeouts))
	kill "${servers[@]}"
	wait "${servers[@]}" 2>/dev/null || :
	if [ "$(value "$variant" "100KB:$regime" peer_cc)" != "\"$variant\"" ]; then
		echo "the senders did not use $variant" >&2
		return 1
	fi
}

modprobe lowtail_faults
bottleneck
settle

variants=(dctcp ${ours:+"$ours"})
for cc in "${variants[@]}"; do
	run clean 200ms "$cc" 0
	run bursts 1500ms "$cc" 200 "rexmit=random 4"
	run lone 300ms "$cc" 0 "lone=random 10"
done

variant=-
[ "$(value dctcp 100KB:bursts peer_cwnd_min)" -lt 2 ] ||
	void "stock dctcp was never seen below 2 packets under losses"
[ "$(value dctcp 100KB:bursts timeouts)" != 0 ] || void "stock dctcp had no timeout under losses"
[ "$(value dctcp 100KB:bursts lost_retransmissions)" != 0 ] || void "no retransmission was lost under dctcp"
[ "$(value dctcp 100KB:lone lost_alone)" != 0 ] || void "no lone packet was lost under dctcp"

# tails REGIME: what it says of each variant.
tails() {
	local cc
	for cc in "${variants[@]}"; do
		printf '%s %s/%s/%s' "${sep:-}$cc" "$(ms "$cc" "$1" p99)" "$(ms "$cc" "$1" p99.9)" "$(ms "$cc" "$1" max)"
		local sep=', '
	done
}

ms() {
	awk -v us="$(value "$1" "100KB:$2" "$3")" 'BEGIN { printf "%.1f", us / 1000 }'
}

finding - meaning "100 KB RPCs of $conns connections, p99/p99.9/max in ms. Without losses: $(tails clean). \
One packet in 200 lost, and one retransmission in 4: $(tails bursts); \
timeouts: dctcp $(value dctcp 100KB:bursts timeouts)${ours:+, $ours $(value $ours 100KB:bursts timeouts)}. \
One lone packet in 10, which no floor mends: $(tails lone)."
