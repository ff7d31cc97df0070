# shellcheck shell=bash disable=SC2034,SC2154 # variant is lib.sh's
# SPDX-License-Identifier: GPL-2.0
#
# replies.sh: replies in two NODELAY writes over two e1000e, the sender's with a long transmit-interrupt delay: a
# completion that comes late is what autocorking waits for. 300 us of netem on the receiver's side keep the first
# segment unacknowledged. Sourced by T0 and by those that have an application of Debian's in rpctail's place; not a
# scenario itself.

tx_delay=2000

# replies_net: the NICs; the server is in namespace `left` at 10.0.0.1, the client in `right`.
replies_net() {
	require rpctail "build selftests first"
	nic_pair TxIntDelay=$tx_delay,$tx_delay TxAbsIntDelay=$tx_delay,$tx_delay IntMode=1,1
	modprobe sch_netem
	on right tc qdisc add dev nic root netem delay 300us limit 10000
}

# replies FLOW ARGUMENT...: the client's records, and how often stock's autocorking acted.
replies() {
	local flow=$1 before after
	say "$variant, $flow"
	before=$(counter left TcpExtTCPAutoCorking)
	rpc right --name "$flow" --sample 10ms "${@:2}"
	after=$(counter left TcpExtTCPAutoCorking)
	record "$flow" TCPAutoCorking count $((after - before))
}

# compare COMMAND: that under stock, without autocorking, and under our policies.
compare() {
	local policy
	variant=stock
	"$1"
	set_sysctl left net.ipv4.tcp_autocorking 0
	variant=autocorking-off
	"$1"
	set_sysctl left net.ipv4.tcp_autocorking 1
	for policy in $(policies nodelay bounded); do
		set_sysctl left net.ipv4.tcp_autocork_policy "$policy"
		variant=$policy
		"$1"
	done
	variant=-
}

# held FLOW PERCENTILE...: whether stock corked, and is slower there than without autocorking.
held() {
	local flow=$1 p
	[ "$(value stock "$flow" TCPAutoCorking)" != 0 ] || return 1
	shift
	for p; do
		greater "$(value stock "$flow" "$p")" "$(value autocorking-off "$flow" "$p")" || return 1
	done
}

# must_hold FLOW PERCENTILE...: void unless held.
must_hold() {
	if [ "$(value stock "$1" TCPAutoCorking)" = 0 ]; then
		void "stock did not autocork ($1)"
	elif ! held "$@"; then
		void "stock's ${*:2} is not longer than without autocorking ($1)"
	fi
}

# of FLOW PERCENTILE: of each variant that there is, for a text.
of() {
	local v text=
	for v in stock autocorking-off nodelay bounded; do
		[ -z "$(value "$v" "$1" "$2")" ] || text="$text${text:+, }$v $(value "$v" "$1" "$2")"
	done
	echo "$text"
}
