# shellcheck shell=bash disable=SC2034,SC2154 # scenario and variant are lib.sh's
# SPDX-License-Identifier: GPL-2.0
#
# T4-cwnd: the congestion windows of T4's nine flows over time, ACK by ACK.
#
# T4's network, marking, flows and regimes, in a run of its own, so that recording does not change what T4
# measures. The kernel's tracepoint tcp:tcp_probe tells a sender's window whenever a packet comes to it. From
# the moment that the marks begin, each change of it is recorded, in packets, with the time in us: the metric
# cwnd_over_time. A point is the window that the ACK found, before it was worked on.
#
# Regimes, the word after the colon in a flow's name: T4's stands and shallow, and
#   losses   shallow, and each sender loses one of its packets in 100 at random, which brings stock to 1
# A flow is named after what it carries and its sender.
#
# Control: stock dctcp in the same boot. Void: no CE mark under a variant, or stock was never below 2 in losses.
# Public figures: T4's.

# shellcheck source=selftests/scenarios/bottleneck.sh
. /scenarios/bottleneck.sh

step=30000
shallow=45000
probe=/sys/kernel/tracing/events/tcp/tcp_probe
names='1MB 10KB stream'

# What is asked of the senders has a port a kind of flow; streams go to the receiver.
declare -A port=([10KB]=7717 [1MB]=7718 [stream]=7719)

# losing N: each sender loses one of its packets in N at random; 0: none.
losing() {
	local s
	for s in 1 2 3; do
		on router tc qdisc del dev "to-s$s" clsact 2>/dev/null || :
		[ "$1" = 0 ] && continue
		on router tc qdisc add dev "to-s$s" clsact
		on router tc filter add dev "to-s$s" ingress matchall action gact ok random netrand drop "$1"
	done
}

# windows REGIME: the trace as records. A line of it is
#   COMMAND [CPU] FLAGS SECONDS: tcp_probe: family=F src=ADDRESS:PORT dest=ADDRESS:PORT ... snd_cwnd=N ...
windows() {
	awk -v regime="$1" -v small=":${port[10KB]}" -v big=":${port[1MB]}" '
			$5 == "tracing_mark_write:" { start = $4 * 1e6; next }
			$5 != "tcp_probe:" || !match($7, /10\.0\.[123]\.2/) { next }
			{
				kind = "stream"
				if (index($7, small)) kind = "10KB"
				if (index($7, big)) kind = "1MB"
				flow = kind "-s" substr($7, RSTART + 5, 1) ":" regime
				at = sprintf("%.0f", $4 * 1e6 - start)
				match($0, /snd_cwnd=[0-9]+/)
				window = substr($0, RSTART + 9, RLENGTH - 9) + 0
				acks[flow]++
				if (!(flow in least) || window < least[flow]) least[flow] = window
				if (last[flow] != window) text[flow] = text[flow] " " at ":" window
				last[flow] = window
				end[flow] = at
			}
			END { for (flow in acks) print flow, acks[flow], least[flow], text[flow], end[flow] ":" last[flow] }' \
		/sys/kernel/tracing/trace | LC_ALL=C sort >/tmp/windows
	while read -r flow acks least points; do
		record "$flow" acks count "$acks"
		record "$flow" cwnd_min packets "$least"
		record "$flow" cwnd_over_time us:packets "\"$points\""
	done </tmp/windows
	[ "$(wc -l </tmp/windows)" = 9 ] || {
		echo "$(wc -l </tmp/windows) flows of 9 in the trace of $1, $variant" >&2
		return 1
	}
}

# run REGIME LIMIT LOSING CC: the nine flows.
run() {
	local regime=$1 limit=$2 servers=() loads=() ns s kind red after
	variant=$4
	say "$regime, $variant"
	for ns in receiver s1 s2 s3; do
		set_sysctl "$ns" net.ipv4.tcp_congestion_control "$variant"
		for kind in $names; do
			# Not by `on`: a function in the background is a shell, and killing it kills no server.
			ip netns exec "$ns" rpctail server --listen "0.0.0.0:${port[$kind]}" --sample 0 >/dev/null &
			servers+=($!)
		done
	done
	marking 100000 $deep
	read -ra red <<<"$(red_counts)"
	for kind in 10KB 1MB; do
		ip netns exec receiver rpctail client --quiet --connect "10.0.1.2:${port[$kind]}" \
			--connect "10.0.2.2:${port[$kind]}" --connect "10.0.3.2:${port[$kind]}" \
			--warmup 0s --duration 60s --nodelay --flow "name=$kind,conns=3,request=100,reply=${kind%B}" &
		loads+=($!)
	done
	sleep 0.05
	for s in 1 2 3; do
		ip netns exec "s$s" rpctail client --connect "10.0.9.2:${port[stream]}" --quiet --flow mode=stream \
			--warmup 0s --duration 60s &
		loads+=($!)
	done
	sleep 0.2
	for s in 1 2 3; do
		on "s$s" ss -Htni state established | grep -wq "$variant" || {
			echo "s$s does not use $variant" >&2
			return 1
		}
	done
	echo >/sys/kernel/tracing/trace
	marking "$step" "$limit"
	losing "$3"
	echo "$variant" >/sys/kernel/tracing/trace_marker
	echo 1 >$probe/enable
	sleep "$duration"
	echo 0 >$probe/enable
	losing 0
	kill "${loads[@]}" "${servers[@]}"
	wait "${loads[@]}" "${servers[@]}" 2>/dev/null || :
	windows "$regime"
	read -ra after <<<"$(red_counts)"
	record "all:$regime" marked count $((after[0] - red[0]))
	record "all:$regime" dropped count $((after[1] - red[1]))
}

bottleneck
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || :
# The senders' sockets alone.
echo "sport == ${port[10KB]} || sport == ${port[1MB]} || dport == ${port[stream]}" >$probe/filter
echo 16384 >/sys/kernel/tracing/buffer_size_kb
settle

duration=0.4
for cc in dctcp $ours $old; do
	run stands "$deep" 0 "$cc"
done
for regime in shallow losses; do
	for cc in dctcp $ours; do
		run $regime "$shallow" "$([ $regime = losses ] && echo 100 || echo 0)" "$cc"
	done
done

# least CC REGIME: the smallest window over the nine flows.
least() {
	local s kind
	for kind in $names; do
		for s in 1 2 3; do
			value "$1" "$kind-s$s:$2" cwnd_min
		done
	done | sort -n | head -n 1
}

variant=-
for cc in dctcp $ours; do
	[ "$(value "$cc" all:stands marked)" != 0 ] || void "no CE mark under $cc"
done
[ "$(least dctcp losses)" -lt 2 ] || void "stock dctcp was never below 2 packets under losses"
finding - meaning "The smallest window that an ACK found in the nine flows, in packets. As they stand: \
dctcp $(least dctcp stands)${ours:+, $ours $(least $ours stands)}${old:+, $old $(least $old stands)}. Shallow buffer: \
dctcp $(least dctcp shallow)${ours:+, $ours $(least $ours shallow)}. One packet in 100 lost as well: \
dctcp $(least dctcp losses)${ours:+, $ours $(least $ours losses)}."
