# shellcheck shell=bash disable=SC2034,SC2154 # scenario and variant are lib.sh's
# SPDX-License-Identifier: GPL-2.0
#
# trace: the same window, ACK by ACK, until the floor is needed.
#
# Two namespaces with a veth between them, one packet a segment, and a way out that marks some packets
# and loses some others, which ones by fixed seeds and by the packet's number. One connection sends 200 KB a
# second, in virtual time, once under dctcp and once under dctcp_floor. At every ACK the
# kernel's own tracepoint tcp:tcp_probe tells SND.UNA, SND.NXT, cwnd and ssthresh.
#
# Result: how many ACKs are alike. They have to be until stock's cwnd is below 2 for the first time;
# there ours is 2. The scenario fails where they differ before that.
# Control: stock dctcp runs twice, and its two traces have to be alike from end to end.
#   Void: they are not, stock never fell below 2, or did so within the first 1000 ACKs.
# Public figures: none.

port=7717
pieces=40
piece=200000
probe=/sys/kernel/tracing/events/tcp/tcp_probe

# way_out MARKED LOST: of a hundred packets each.
way_out() {
	on left tc qdisc replace dev nic root handle 1: netem delay 5ms rate 10mbit limit 1000 loss random "$1%" seed 1 ecn
	on left tc qdisc replace dev nic parent 1:1 handle 2: netem limit 1000 loss random "$2%" seed 2
}

# at MS: until the next moment that is a multiple of so many milliseconds, to some microseconds.
at() {
	local period=$(($1 * 1000))
	sleep "$(awk -v now="${EPOCHREALTIME/./}" -v period=$period \
		'BEGIN { printf "%.6f", (2 * period - 10000 - now % period) % period / 1e6 }')"
	while [ $((${EPOCHREALTIME/./} % period)) -gt 5000 ]; do
		:
	done
}

# data: what the connection sends, with pauses that are longer than an RTO.
data() {
	local i
	for i in $(seq $pieces); do
		at 1000
		head -c $piece /dev/zero
	done
}

# follow VARIANT CC: the trace into /tmp/VARIANT.
follow() {
	local server
	variant=$1
	say "$variant"
	for ns in left right; do
		set_sysctl "$ns" net.ipv4.tcp_congestion_control "$2"
	done
	on left tc qdisc del dev nic root 2>/dev/null || :
	way_out 6 1
	echo >/sys/kernel/tracing/trace
	echo 1 >$probe/enable
	at 5000
	data | ip netns exec left nc -l -p "$port" &
	server=$!
	# Jiffies decide when an ACK is delayed and when a timer is late: everything begins at the same
	# moment of one. Nobody reads, so that nobody's turn on the CPU comes between segments.
	on right bash -c "$(declare -f at); at 500; exec 5<>/dev/tcp/10.0.0.1/$port; sleep $((pieces + 5))"
	wait "$server" || :
	echo 0 >$probe/enable
	# Both numbers from SND.UNA of the first ACK on, as the initial one is random; without the FIN.
	sed -n 's/.*snd_nxt=\(0x[0-9a-f]*\) snd_una=\(0x[0-9a-f]*\) snd_cwnd=\([0-9]*\) ssthresh=\([0-9]*\) .*/\1 \2 \3 \4/p' \
		/sys/kernel/tracing/trace |
		while read -r nxt una cwnd ssthresh; do
			: "${first:=$((una))}"
			nxt=$(((nxt - first) & 0xffffffff))
			[ "$nxt" -gt $((pieces * piece)) ] || echo "$(((una - first) & 0xffffffff)) $nxt $cwnd $ssthresh"
		done >"/tmp/$variant"
	record data acks count "$(wc -l <"/tmp/$variant")"
	record data cwnd_min packets "$(awk 'NR == 1 || $3 < min { min = $3 } END { print min }' "/tmp/$variant")"
}

# alike A B: the number of ACKs from the first on that are the same in both.
alike() {
	paste -d, "/tmp/$1" "/tmp/$2" | awk -F, '$1 != $2 { exit } { n++ } END { print n + 0 }'
}

modprobe tcp_dctcp
modprobe tcp_dctcp_floor
setup_ns left right
ip link add nic netns left type veth peer name nic netns right
i=0
for ns in left right; do
	i=$((i + 1))
	ip -n $ns addr add "10.0.0.$i/24" dev nic
	ip -n $ns link set nic address "52:54:00:00:01:0$i" up gso_max_segs 1
	# No packet but the connection's, or they would not be counted alike.
	set_sysctl $ns net.ipv6.conf.nic.disable_ipv6 1
	ip -n $ns neigh replace "10.0.0.$((3 - i))" dev nic lladdr "52:54:00:00:01:0$((3 - i))" nud permanent
	on $ns ethtool -K nic tso off gso off gro off >/dev/null
	# All of it fits into the sender's and into the receiver's buffer.
	set_sysctl $ns net.ipv4.tcp_wmem "4096 16777216 16777216"
	set_sysctl $ns net.ipv4.tcp_rmem "4096 67108864 67108864"
	set_sysctl $ns net.ipv4.tcp_no_metrics_save 1
done
sysctl -q -w net.ipv4.tcp_allowed_congestion_control="reno cubic dctcp dctcp_floor"
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || :
echo "sport == $port" >$probe/filter
echo 16384 >/sys/kernel/tracing/buffer_size_kb
settle

follow warm-up dctcp
follow dctcp dctcp
follow dctcp_floor dctcp_floor
follow dctcp-again dctcp

variant=dctcp-again
record data alike count "$(alike dctcp dctcp-again)"
variant=dctcp_floor
record data alike count "$(alike dctcp dctcp_floor)"
below=$(awk '$3 < 2 { print NR; exit }' /tmp/dctcp)
floor=$(awk -v at="${below:-0}" 'NR == at { print $3 }' /tmp/dctcp_floor)
record data floor_at count "${below:-0}"
same=$(value dctcp_floor data alike)
variant=-
if [ "$(value dctcp-again data alike)" != "$(value dctcp data acks)" ]; then
	void "stock's own two traces part after $(value dctcp-again data alike) of $(value dctcp data acks) ACKs"
elif [ -z "$below" ]; then
	void "stock's window never fell below 2"
elif [ "$below" -le 1000 ]; then
	void "stock's window fell below 2 at ACK $below already"
elif [ "$same" -lt $((below - 1)) ]; then
	echo "the windows part at ACK $((same + 1)), before stock's falls below 2 at $below:" >&2
	for cc in dctcp dctcp_floor; do
		echo "$cc: $(sed -n "$((same + 1))p" "/tmp/$cc") (SND.UNA, SND.NXT, cwnd, ssthresh)" >&2
	done
	exit 1
elif [ "$floor" != 2 ]; then
	echo "stock's window is below 2 at ACK $below, ours is $floor there" >&2
	exit 1
fi
finding - meaning "$same ACKs one after the other find the same SND.UNA, SND.NXT, cwnd and ssthresh under dctcp \
and dctcp_floor, with marks and losses; at ACK ${below:-none} stock's window is below 2 and dctcp_floor's ${floor:-none}. \
The least window of the run: dctcp $(value dctcp data cwnd_min), dctcp_floor $(value dctcp_floor data cwnd_min)."
