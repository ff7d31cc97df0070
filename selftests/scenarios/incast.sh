# shellcheck shell=bash disable=SC2034,SC2154 # scenario and variant are lib.sh's
# SPDX-License-Identifier: GPL-2.0
#
# incast: many senders answer one receiver at the same moment, through one shallow queue.
#
# The receiver asks all connections at once for 3 packets each and asks again when the last answer
# is there (a barrier); 6, 24 and 48 connections over three hosts, 200 Mbit/s, a marking step at
# 30 kB and a hard limit of 60 kB. A round lasts as long as its slowest flow. The floor has its
# price here: N flows that cannot go below 2 packets keep 2*N in the queue.
#
# Control: stock dctcp in the same boot. Void: no CE mark and no drop was seen under it.
# Public figures: none.

# shellcheck source=selftests/scenarios/bottleneck.sh
. /scenarios/bottleneck.sh

step=30000
shallow=60000
duration=1s

# run CONNECTIONS CC
run() {
	local n=$1 servers=() ns red after
	variant=$2
	say "$n connections, $variant"
	for ns in receiver s1 s2 s3; do
		set_sysctl "$ns" net.ipv4.tcp_congestion_control "$variant"
		ip netns exec "$ns" rpctail server >/dev/null &
		servers+=($!)
	done
	marking "$step" "$shallow"
	read -ra red <<<"$(red_counts)"
	rpc receiver --connect 10.0.1.2 --connect 10.0.2.2 --connect 10.0.3.2 \
		--name "round:$n" --mode barrier --conns "$n" --request 100 --reply 4344 --nodelay \
		--duration "$duration" --warmup 100ms --warmup-exchanges 2 --sample 5ms
	kill "${servers[@]}"
	wait "${servers[@]}" 2>/dev/null || :
	read -ra after <<<"$(red_counts)"
	record "round:$n" marked count $((after[0] - red[0]))
	record "round:$n" dropped count $((after[1] - red[1]))
}

bottleneck
settle
for n in 6 24 48; do
	for cc in cubic dctcp $ours; do
		run "$n" "$cc"
	done
done

variant=-
[ "$(value dctcp round:48 marked)" != 0 ] || [ "$(value dctcp round:48 dropped)" != 0 ] ||
	void "48 answers at once made neither a mark nor a drop under dctcp"

# tail CC N: p50 and p99 of a flow, in ms, and what was dropped.
tail_of() {
	awk -v a="$(value "$1" "round:$2" p50)" -v b="$(value "$1" "round:$2" p99)" \
		-v c="$(value "$1" "round:$2" dropped)" 'BEGIN { printf "%.1f/%.1f ms (%d dropped)", a / 1000, b / 1000, c }'
}
text="Answers of 3 packets, p50/p99."
for n in 6 24 48; do
	text="$text $n at once: dctcp $(tail_of dctcp $n)${ours:+, $ours $(tail_of "$ours" $n)}."
done
finding - meaning "$text The floor keeps two packets of each flow in the queue; where that overflows it, \
its drops are the floor's price."
