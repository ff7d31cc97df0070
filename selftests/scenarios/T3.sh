# shellcheck shell=bash disable=SC2034,SC2154 # scenario and variant are lib.sh's
# SPDX-License-Identifier: GPL-2.0
#
# T3: what autocorking is worth, and what turning it off for NODELAY sockets costs.
#
# Real netperf streams of 500-byte writes, plain and with -D (TCP_NODELAY), over
# two e1000e back to back whose completions come by interrupt; CPU-bound, as in the
# public thread.
#
# Control: net.ipv4.tcp_autocorking=0. Void: stock counts no TCPAutoCorking in one
#   of its two runs, or autocorking is worth nothing to the -D stream.
# Public figures (netdev 2018-05 "tcp: restore autocorking", 40 Gb/s NIC):
#   2682 -> 5472 Mbit/s with TCPAutoCorking 33 -> 361293;
#   with -D 1408 -> 5454 Mbit/s, 1 -> 315448.
# What it decides: streams without -D must keep stock's figure under every policy.
#   For -D streams `nodelay` pays the price shown here; that is the case for `bounded`.

# Bytes of one run: about a fifth to half of a virtual second.
volume=${T3_BYTES:-16000000}
writes=500

# netperf_run FLOW [OPTION]: one stream, its throughput and corks.
netperf_run() {
	local flow=$1 before after mbps
	shift
	say "$variant, $flow"
	before=$(counter left TcpExtTCPAutoCorking)
	mbps=$(on left netperf -H 10.0.0.2 -4 -t TCP_STREAM -l "-$volume" -P 0 -- -m "$writes" "$@" |
		awk 'NF == 5 { print $5 }')
	after=$(counter left TcpExtTCPAutoCorking)
	record "$flow" throughput Mbit/s "$mbps"
	record "$flow" TCPAutoCorking count $((after - before))
	result[$variant/$flow]=$mbps
	corks[$variant/$flow]=$((after - before))
}

both() {
	variant=$1
	netperf_run stream
	netperf_run stream-nodelay -D
}

declare -A result corks
nic_pair
on left ethtool -C nic rx-usecs 3
on right ethtool -C nic rx-usecs 3
on right netserver -4 -D >/dev/null 2>&1 &
settle
say "warming up"
on left netperf -H 10.0.0.2 -4 -t TCP_RR -l -64 -P 0 >/dev/null

both stock
set_sysctl left net.ipv4.tcp_autocorking 0
both autocorking-off
set_sysctl left net.ipv4.tcp_autocorking 1
for policy in $(policies nodelay bounded); do
	set_sysctl left net.ipv4.tcp_autocork_policy "$policy"
	both "$policy"
done

variant=-
if [ "${corks[stock/stream]}" = 0 ] || [ "${corks[stock/stream-nodelay]}" = 0 ]; then
	void "stock did not autocork: ${corks[stock/stream]} corks, ${corks[stock/stream-nodelay]} with -D"
elif greater "${result[autocorking-off/stream-nodelay]}" "${result[stock/stream-nodelay]}"; then
	void "autocorking gains the -D stream nothing on this link"
fi
finding - meaning "500-byte writes as fast as the CPU allows. Autocorking is what makes a -D stream fast: \
stock ${result[stock/stream-nodelay]} Mbit/s, off ${result[autocorking-off/stream-nodelay]} Mbit/s. \
The policy nodelay gives that up for NODELAY sockets: ${result[nodelay/stream-nodelay]:-not measured}; \
bounded keeps most of it: ${result[bounded/stream-nodelay]:-not measured}. Streams without -D pay for the hook \
alone: ${result[nodelay/stream]:-not measured} of ${result[stock/stream]} Mbit/s."
