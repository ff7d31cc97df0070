# shellcheck shell=bash disable=SC2034,SC2154 # scenario and variant are lib.sh's
# SPDX-License-Identifier: GPL-2.0
#
# T0: the second write of a reply is held by autocorking although TCP_NODELAY is set.
#
# Replies of 3091 + 5 bytes (the end of a chunked reply), NODELAY, open-loop requests
# over several connections. Two e1000e back to back, the sender's with a long
# transmit-interrupt delay: a completion that comes late is what autocorking waits for.
# 300 us of netem on the receiver's side keep the first segment unacknowledged.
#
# Control: stock must count TCPAutoCorking and be slower at p50 and p99 than
#   net.ipv4.tcp_autocorking=0 in the same boot. Void: it is not.
# Public figures (netdev 2023-12 "tcp: disable tcp_autocorking for socket when
#   TCP_NODELAY flag is set", Tomcat on arm64): p99.99 43.62 -> 2.27 ms, max 49.34 ->
#   4.57 ms. There a lost wake-up (T1) made 40 ms of it; here the hold is as long as a
#   completion or an ACK takes, the mechanism is the same.

conns=${CONNS:-8}
rate=${RATE:-2000}
duration=${DURATION:-3s}

# shellcheck source=selftests/scenarios/replies.sh
. /scenarios/replies.sh

replies_net
rpc_server left
settle
say "replies of 3091+5 bytes, $conns connections, $rate requests a second"
load() {
	replies reply --connect 10.0.0.1 --conns "$conns" --rate "$rate" --duration "$duration" --warmup 500ms \
		--request 100 --reply 3091+5 --nodelay
}
compare load
must_hold reply p50 p99
finding - meaning "A reply in two NODELAY writes. Stock holds the second until a TX completion or an ACK \
frees the first: $(value stock reply TCPAutoCorking) corks, p50 $(value stock reply p50) us; without autocorking \
$(value autocorking-off reply p50) us."
