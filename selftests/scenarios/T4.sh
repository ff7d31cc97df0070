# shellcheck shell=bash disable=SC2034,SC2154 # scenario and variant are lib.sh's
# SPDX-License-Identifier: GPL-2.0
#
# T4: short RPCs beside bulk under DCTCP.
#
# Three senders, one receiver, a router between them whose egress marks at a step:
# 200 Mbit/s, RED from 30 kB on, offloads off. Each sender serves one stream, 1 MB
# RPCs back to back and 10 KB RPCs back to back: nine flows. The receiver asks, the
# senders' replies carry the data, so `peer_*` records are the data senders'.
#
# Regimes, the word after the colon in a flow's name:
#   stands   the nine flows as they stand, deep buffer
#   shallow  the same with a hard limit of 45 kB: drops come in bursts
# dctcp_2018, where selftests/faults is built, follows the rule of 2018, which left a window
# of 1 where today's leaves 2: the historical control. What a window of 1 costs today, which
# takes losses, is T4-loss's to show.
#
# Control: stock dctcp in the same boot. Void: no CE mark was seen under a DCTCP variant, or one had
#   no 10 KB reply at all in its time.
# Public figures (netdev 2018-06 "tcp: force cwnd at least 2 in tcp_cwnd_reduction"),
#   p99/p99.9 of 1 MB and of 10 KB: cubic 3.5/6.0 ms and 1.0/2.5 ms; dctcp 43/208 ms and
#   53/212 ms; floor of 2: 3.8/4.4 ms and 168/211 us. The 40 ms were the receiver's
#   delayed ACK, mended in 2018; the 200 ms are the lone packet's and are still there.

# shellcheck source=selftests/scenarios/bottleneck.sh
. /scenarios/bottleneck.sh

step=30000
shallow=45000

# run REGIME LIMIT CC: the nine flows. Connections are made before the limit holds: a SYN
# that is lost would be another story.
run() {
	local regime=$1 limit=$2 servers=() streams=() load ns s before after red
	variant=$3
	say "$regime, $variant"
	for ns in receiver s1 s2 s3; do
		set_sysctl "$ns" net.ipv4.tcp_congestion_control "$variant"
		# Not by `on`: a function in the background is a shell, and killing it kills no server.
		ip netns exec "$ns" rpctail server --sample 100us >/dev/null &
		servers+=($!)
	done
	marking 100000 $deep
	read -ra red <<<"$(red_counts)"
	before=$(senders TcpExtTCPLossProbes)
	rpc receiver --connect 10.0.1.2 --connect 10.0.2.2 --connect 10.0.3.2 \
		--duration "$duration" --warmup 300ms --sample 5ms --nodelay \
		--flow "name=10KB:$regime,conns=3,request=100,reply=10K" \
		--flow "name=1MB:$regime,conns=3,request=100,reply=1M,warmup-exchanges=0" &
	load=$!
	sleep 0.05
	for s in 1 2 3; do
		ip netns exec "s$s" rpctail client --connect 10.0.9.2 --quiet --flow mode=stream \
			--warmup 0s --duration 60s &
		streams+=($!)
	done
	sleep 0.2
	marking "$step" "$limit"
	wait "$load"
	kill "${streams[@]}" "${servers[@]}"
	wait "${streams[@]}" "${servers[@]}" 2>/dev/null || :
	# What one variant leaves behind would be measured as the next one's.
	if pidof rpctail >/dev/null; then
		echo "rpctail of $variant is still there" >&2
		return 1
	fi
	if [ "$(value "$variant" "10KB:$regime" peer_cc)" != "\"$variant\"" ]; then
		echo "the senders did not use $variant" >&2
		return 1
	fi
	after=$(senders TcpExtTCPLossProbes)
	record "10KB:$regime" loss_probes count $((after - before))
	read -ra after <<<"$(red_counts)"
	record "all:$regime" marked count $((after[0] - red[0]))
	record "all:$regime" dropped count $((after[1] - red[1]))
}

bottleneck
settle

duration=500ms
for cc in cubic dctcp $ours $old; do
	run stands "$deep" "$cc"
done
for cc in dctcp $ours; do
	run shallow "$shallow" "$cc"
done

variant=-
for cc in dctcp $ours; do
	[ "$(value "$cc" all:stands marked)" != 0 ] || void "no CE mark under $cc"
done
for cc in cubic dctcp $ours $old; do
	[ "$(value "$cc" 10KB:stands replies)" != 0 ] || void "no 10 KB reply under $cc"
done

# tail CC REGIME: p99 and max of the 10 KB RPCs, in ms.
tail_of() {
	awk -v a="$(value "$1" "10KB:$2" p99)" -v b="$(value "$1" "10KB:$2" max)" \
		'BEGIN { printf "%.1f/%.1f", a / 1000, b / 1000 }'
}
finding - meaning "10 KB RPCs beside 1 MB RPCs and streams, p99/max in ms. Nine flows as they stand: \
cubic $(tail_of cubic stands), dctcp $(tail_of dctcp stands)${ours:+, $ours $(tail_of "$ours" stands)}\
${old:+, $old $(tail_of "$old" stands)}. Shallow buffer: dctcp $(tail_of dctcp shallow)\
${ours:+, $ours $(tail_of "$ours" shallow)}. Today's kernel takes a window to 1 only under losses, so the nine \
flows as they stand show no tail of 200 ms, whatever the algorithm; about 200 ms under the shallow buffer is \
the probe or RTO timer of a packet that was alone, mostly a reply's last one, and a handful of those ranks \
nothing."
