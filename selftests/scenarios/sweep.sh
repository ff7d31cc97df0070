# shellcheck shell=bash disable=SC2034,SC2154 # scenario and variant are lib.sh's
# SPDX-License-Identifier: GPL-2.0
#
# sweep: what N senders do to one bottleneck, and it to them, for N from 1 to 48.
#
# Three hosts answer one receiver through 100 Mbit/s with a marking step at 30 kB (20 packets) and
# room for 60 kB (40). `incast:N`: the receiver asks N connections at once for 20 kB each, and again
# when the last answer is there; every connection has the same number of answers, so percentiles are
# of all of them alike. `closed:N` (sweep-closed): each asks again by itself; who gets how much is up
# to the algorithm, which is Jain's index (`fairness`), and flows that stand still have no answers in
# the percentiles. Queue: what a packet finds that comes to the bottleneck, by a kprobe's histogram.
# Drops are a share of those packets, since who is faster has more answers in the same time. Goodput
# is `throughput`.
#
# sweep-many is the same for N = 128 and 256, sweep-fq with sch_fq at the senders.
#
# Variants: cubic, dctcp, dctcp_floor, and `paced` (dctcp_floor with pace_below_floor=Y). Who comes first is another
# with each seed: what a boot does at its beginning and end must not look like the work of an algorithm.
# Control: stock dctcp in the same boot. Void: no CE mark was seen under it with N at its most.
# Public figures: none.

# shellcheck source=selftests/scenarios/bottleneck.sh
. /scenarios/bottleneck.sh

: "${NS:=1 4 16 48}" "${QDISC:=pfifo}" "${LOAD:=incast}"
rate=100mbit
step=30000
shallow=60000
tracing=/sys/kernel/tracing

# marking BYTES LIMIT: RED as a step on the queue of the moment, as RFC 8257 has it. bottleneck.sh's
# averages over more packets, and answers of few packets come and go meanwhile.
marking() {
	on router tc qdisc replace dev to-receiver parent 1:1 handle 2: red limit "$2" \
		min "$1" max $(($1 + 1)) avpkt 1500 burst $(($1 / 1500 + 1)) \
		bandwidth $rate probability 1 ecn
}

# queue_watched: from now on the queue before each packet goes into a histogram.
queue_watched() {
	echo 'hist:keys=bytes' >$tracing/events/lowtail/queue/trigger
}

# queue_seen FLOW: records mean and p99 of the histogram, and how many packets came; ends it.
queue_seen() {
	local mean p99 came
	sed -n 's/.*bytes: *\([0-9]*\) *} hitcount: *\([0-9]*\).*/\1 \2/p' \
		$tracing/events/lowtail/queue/hist | sort -n >/tmp/queue
	echo '!hist:keys=bytes' >$tracing/events/lowtail/queue/trigger
	awk '{ n += $2; sum += $1 * $2; at[NR] = $1; upto[NR] = n }
		END {
			for (i = 1; upto[i] < 0.99 * n; i++);
			printf "%.1f %.1f %d\n", sum / n / 1000, at[i] / 1000, n
		}' /tmp/queue >/tmp/queue_of
	read -r mean p99 came </tmp/queue_of
	record "$1" arrived count "$came"
	record "$1" queue_mean kB "$mean"
	record "$1" queue_p99 kB "$p99"
}

# load ARGUMENT...: in the background, and at the usual priority: this script has a better one, so
# that what it reads is of the moment.
load() {
	(
		renice 0 -p $BASHPID
		exec "$@"
	) &
}

# duration N: long enough for some rounds. Where they wait for timers, most of the time costs nothing.
duration() {
	if [ "$1" -lt 8 ]; then
		echo 1s
	elif [ "$LOAD" = closed ]; then
		echo 1s
	elif [ "$1" -lt 32 ]; then
		echo 1s
	elif [ "$1" -lt 64 ]; then
		echo 3s
	else
		echo 9s
	fi
}

# of_ours COUNTER: dctcp_floor's own, its sum over the senders.
of_ours() {
	local s
	for s in s1 s2 s3; do
		on "$s" cat /proc/net/tcp_dctcp_floor
	done | awk -v name="^$1\$" '$1 ~ name { n += $2 } END { print n + 0 }'
}

# run N VARIANT
run() {
	local n=$1 flow=$LOAD:$1 cc=$2 servers=() client ns red after probes timeouts paced held floored
	variant=$2
	say "$flow, $variant"
	if [ "$variant" = paced ]; then
		cc=dctcp_floor
		echo Y >/sys/module/tcp_dctcp_floor/parameters/pace_below_floor
	fi
	for ns in receiver s1 s2 s3; do
		set_sysctl "$ns" net.ipv4.tcp_congestion_control "$cc"
		load ip netns exec "$ns" rpctail server >/dev/null
		servers+=($!)
	done
	# Before the load: reading them takes time, and what is compared must begin at the same point for all.
	if [ "$cc" = dctcp_floor ]; then
		paced=$(of_ours paced)
		held=$(of_ours held_back)
		floored=$(of_ours 'floor_.*')
	fi
	# Connections are made before a mark or a drop could come.
	marking 500000 $deep
	(
		renice 0 -p $BASHPID
		rpc receiver --connect 10.0.1.2 --connect 10.0.2.2 --connect 10.0.3.2 \
			--name "$flow" --mode "${LOAD/incast/barrier}" --conns "$n" --request 100 \
			--reply 20000 --nodelay --duration "$(duration "$n")" --warmup 400ms \
			--warmup-exchanges 0 --sample 20ms
	) &
	client=$!
	sleep 0.1
	marking $step $shallow
	sleep 0.3
	read -ra red <<<"$(red_counts)"
	probes=$(senders TcpExtTCPLossProbes)
	timeouts=$(senders TcpExtTCPTimeouts)
	queue_watched
	wait "$client"
	queue_seen "$flow"
	kill "${servers[@]}"
	wait "${servers[@]}" 2>/dev/null || :
	read -ra after <<<"$(red_counts)"
	record "$flow" marked count $((after[0] - red[0]))
	record "$flow" dropped count $((after[1] - red[1]))
	record "$flow" drop_share percent "$(awk -v d="$(value "$variant" "$flow" dropped)" \
		-v n="$(value "$variant" "$flow" arrived)" 'BEGIN { printf "%.2f", 100 * d / n }')"
	record "$flow" timeouts count $(($(senders TcpExtTCPTimeouts) - timeouts))
	record "$flow" loss_probes count $(($(senders TcpExtTCPLossProbes) - probes))
	if [ "$cc" = dctcp_floor ]; then
		record "$flow" paced count $(($(of_ours paced) - paced))
		record "$flow" held_back count $(($(of_ours held_back) - held))
		record "$flow" floored count $(($(of_ours 'floor_.*') - floored))
	fi
	[ "$cc" != dctcp_floor ] || echo N >/sys/module/tcp_dctcp_floor/parameters/pace_below_floor
}

renice -19 -p $$
bottleneck
for s in 1 2 3; do
	on "s$s" tc qdisc replace dev nic root "$QDISC"
done
mount -t tracefs tracefs $tracing
modprobe sch_red
echo 'p:lowtail/queue red_enqueue bytes=sch->qstats.backlog:u32' >$tracing/kprobe_events
echo 1 >$tracing/events/lowtail/queue/enable
settle
read -ra order <<<"cubic dctcp $ours ${ours:+paced}"
first=$(((${SEED:-1} - 1) % ${#order[@]}))
order=("${order[@]:first}" "${order[@]:0:first}")
for n in $NS; do
	for v in "${order[@]}"; do
		run "$n" "$v"
	done
done

variant=-
last=${NS##* }
[ "$(value dctcp "$LOAD:$last" marked)" != 0 ] || void "no CE mark under dctcp with $last senders"

# of METRIC N: stock's, ours and ours paced; in ms where it is a time, "-" where no answer was measured.
of() {
	local v text=
	for v in dctcp $ours ${ours:+paced}; do
		text="$text${text:+, }$(value "$v" "$LOAD:$2" "$1" | awk -v m="$1" '
			{ x = m ~ /^p[0-9]/ ? $1 / 1000 : $1; seen = 1; printf x < 100 ? "%.3g" : "%.0f", x }
			END { if (!seen) printf "-" }')"
	done
	echo "$text"
}

# not_better METRIC: the N, of those with a measured control, where ours paced is larger than stock's.
not_better() {
	local n list=
	for n in $NS; do
		[ -n "$(value dctcp "$LOAD:$n" "$1")" ] || continue
		! greater "$(value paced "$LOAD:$n" "$1")" "$(value dctcp "$LOAD:$n" "$1")" ||
			list="$list${list:+, }$n"
	done
	echo "${list:-none}"
}

text="Answers of 20 kB ($LOAD), $QDISC at the senders; stock dctcp, dctcp_floor, the same paced:"
for n in $NS; do
	text="$text N=$n: goodput $(of throughput "$n") Mbit/s, queue $(of queue_mean "$n") kB, \
drops $(of drop_share "$n") %, Jain $(of fairness "$n"), p50 $(of p50 "$n") ms, p99.9 $(of p99.9 "$n") ms."
done
[ -z "$ours" ] || text="$text Where the paced one is worse than stock, N: mean queue $(not_better queue_mean), p99 of it \
$(not_better queue_p99), drops $(not_better drop_share), p50 $(not_better p50), p99.9 $(not_better p99.9)."
finding - meaning "$text"
