# shellcheck shell=bash disable=SC2034,SC2154 # scenario and variant are lib.sh's
# SPDX-License-Identifier: GPL-2.0
#
# netperf-rr: netperf's TCP_RR, a request and a reply in one write each, over two e1000e back to back.
#
# 64 bytes each way, and 100 bytes for 3096, with and without -D (TCP_NODELAY). A write that is alone is neither
# autocorked nor held by Nagle, so there is no fault of lowtail's kind to be seen: the rows tell that it
# costs nothing where it mends nothing. (Streams of 500-byte writes, with and without -D, are T3.)
#
# Control: stock in the same boot. Void: a flow had no transaction under it.
# Public figures: none.

transactions=${NETPERF_TRANSACTIONS:-2000}

# transact FLOW OPTION...: its times, in us, and the transactions a second.
transact() {
	local flow=$1 mean p50 p90 p99 most rate corks
	shift
	say "$variant, $flow"
	corks=$(counter right TcpExtTCPAutoCorking)
	on left netperf -H 10.0.0.2 -4 -t TCP_RR -l "-$transactions" -P 0 -- "$@" \
		-o MEAN_LATENCY,P50_LATENCY,P90_LATENCY,P99_LATENCY,MAX_LATENCY,TRANSACTION_RATE >/tmp/netperf
	IFS=, read -r mean p50 p90 p99 most rate <<<"$(tail -n 1 /tmp/netperf)"
	[ -n "$rate" ] || {
		echo "netperf said nothing of $flow" >&2
		return 1
	}
	record "$flow" mean us "$mean"
	record "$flow" p50 us "$p50"
	record "$flow" p90 us "$p90"
	record "$flow" p99 us "$p99"
	record "$flow" max us "$most"
	record "$flow" transactions 1/s "$rate"
	record "$flow" TCPAutoCorking count $(($(counter right TcpExtTCPAutoCorking) - corks))
}

all() {
	variant=$1
	transact rr-64 -r 64,64
	transact rr-64-nodelay -r 64,64 -D
	transact rr-3096 -r 100,3096
	transact rr-3096-nodelay -r 100,3096 -D
}

nic_pair
on right netserver -4 -D >/dev/null 2>&1 &
settle
say "warming up"
on left netperf -H 10.0.0.2 -4 -t TCP_RR -l -64 -P 0 >/dev/null

all stock
for policy in $(policies nodelay bounded); do
	for ns in left right; do
		set_sysctl $ns net.ipv4.tcp_autocork_policy "$policy"
	done
	all "$policy"
done

variant=-
greater "$(value stock rr-64 transactions)" 0 || void "no transaction under stock"
times() {
	printf '%s/%s/%s' "$(value stock "$1" mean)" "$(value nodelay "$1" mean)" "$(value bounded "$1" mean)"
}
corks=0 most=0
for flow in rr-64 rr-64-nodelay rr-3096 rr-3096-nodelay; do
	corks=$((corks + $(value stock "$flow" TCPAutoCorking)))
	! greater "$(value stock "$flow" max)" "$most" || most=$(value stock "$flow" max)
done
fault="Stock shows no fault here: no write was corked, the longest transaction took $most us"
if [ "$corks" != 0 ] || greater "$most" 10000; then
	fault="Under stock $corks writes were corked, the longest transaction took $most us"
fi
finding - meaning "A request and a reply in one write each. $fault. \
Mean of a transaction under stock/nodelay/bounded, in us: 64 bytes $(times rr-64), with -D $(times rr-64-nodelay); \
3096 bytes $(times rr-3096), with -D $(times rr-3096-nodelay)."
