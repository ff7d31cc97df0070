# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# lib.sh: what scenarios share inside the guest: records, counters, namespaces,
# the NIC pair, lowtail's switches. Sourced by init before the scenario.
#
# Records go to the virtio port (descriptor 3) the moment they are known; their
# shape is DESIGN §6's. `variant` is the scenario's current row.

scenario=${SCENARIO:?}
variant=-

# say TEXT: progress, for whoever watches.
say() {
	echo "# $*" >&3
}

# emit: records from stdin, one a line, to the port and to what `value` reads.
emit() {
	tee -a /tmp/records >&3
}

# record FLOW METRIC UNIT NUMBER
record() {
	printf '{"scenario":"%s","variant":"%s","flow":"%s","metric":"%s","unit":"%s","value":%s}\n' \
		"$scenario" "$variant" "$1" "$2" "$3" "$4" | emit
}

# value VARIANT FLOW METRIC: what was recorded, the last if it was several times.
value() {
	sed -n "s/.*\"variant\":\"$1\",\"flow\":\"$2\",\"metric\":\"$3\",.*\"value\":\(.*\)}\$/\1/p" \
		/tmp/records | tail -n 1
}

# finding FLOW METRIC TEXT: METRIC is meaning, note or void.
finding() {
	local text=${3//\\/\\\\}
	record "$1" "$2" text "\"${text//\"/\\\"}\""
}

# void REASON: the control did not show the fault, so the comparison says nothing.
void() {
	finding - void "$*"
	echo "$*" >>/tmp/void
}

# require COMMAND WHAT: stop with a clear word when the image lacks something.
require() {
	command -v "$1" >/dev/null || {
		echo "$scenario needs $1, which is not in this image: $2" >&2
		return 1
	}
}

# on NS COMMAND...: run inside a network namespace.
on() {
	ip netns exec "$@"
}

# setup_ns NAME...: namespaces with loopback up and ECN on.
setup_ns() {
	local ns
	for ns; do
		ip netns add "$ns"
		ip -n "$ns" link set lo up
		set_sysctl "$ns" net.ipv4.tcp_ecn 1
	done
}

# set_sysctl NS NAME VALUE, and it must stick.
set_sysctl() {
	on "$1" sysctl -q -w "$2=$3"
	[ "$(on "$1" sysctl -n "$2" | tr '\t' ' ')" = "$3" ] || {
		echo "$2 did not take the value $3" >&2
		return 1
	}
}

has_sysctl() {
	on "$1" test -e "/proc/sys/${2//.//}"
}

# counter NS NAME: a counter of nstat's, absolute.
counter() {
	on "$1" nstat -asz "$2" | awk -v name="$2" '$1 == name { print $2 }'
}

# rpc NS ARGUMENT...: rpctail's client in that namespace under the current variant; its
# records become ours. Broken connections or unanswered requests do not stop the
# scenario: they are counted in the records (`errors`, `unfinished`).
rpc() {
	local ns=$1 status=0
	shift
	on "$ns" rpctail client --scenario "$scenario" --variant "$variant" \
		--json /tmp/rpc.json --quiet "$@" || status=$?
	[ "$status" = 0 ] || [ "$status" = 3 ] || return "$status"
	sed -n 's/^\({.*}\),\{0,1\}$/\1/p' /tmp/rpc.json | emit
}

# rpc_server NS [ARGUMENT...]: rpctail's server in that namespace, until power-off.
rpc_server() {
	on "$1" rpctail server "${@:2}" >/dev/null &
}

# greater A B, for decimal numbers.
greater() {
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b) }'
}

# settle: five virtual seconds in which neighbour discovery, timers of the boot
# and the drivers' watchdogs come to rest. Idle time costs almost no wall time.
settle() {
	sleep 5
}

# nic_pair [PARAMETER=VALUE...]: the two e1000e as `nic` at 10.0.0.1 in namespace
# `left` and at 10.0.0.2 in `right`, the driver loaded with the parameters.
nic_pair() {
	local ns dev i=0
	modprobe e1000e "$@"
	setup_ns left right
	for ns in left right; do
		i=$((i + 1))
		for dev in /sys/class/net/*; do
			[ "$(cat "$dev/address")" = "52:54:00:00:00:0$i" ] || continue
			ip link set "${dev##*/}" netns "$ns" name nic
		done
		ip -n "$ns" addr add "10.0.0.$i/24" dev nic
		ip -n "$ns" link set nic up
	done
	wait_carrier left right
}

wait_carrier() {
	local ns try
	for ns; do
		for try in $(seq 100); do
			on "$ns" cat /sys/class/net/nic/carrier 2>/dev/null | grep -q 1 && continue 2
			sleep 0.1
		done
		echo "no link on nic in $ns after $try tries" >&2
		return 1
	done
}

# policies WANTED...: those of the policies that autocork_policy.ko has; loads it. None,
# and a note, where this image has no such module.
policies() {
	local policy available
	if ! modprobe -q autocork_policy; then
		finding - note "autocork_policy.ko is not in this image"
		return 0
	fi
	available=$(sysctl -n net.ipv4.tcp_available_autocork_policy)
	for policy; do
		case " $available " in
		*" $policy "*) echo "$policy" ;;
		esac
	done
}
