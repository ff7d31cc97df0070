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

# record FLOW METRIC UNIT NUMBER
record() {
	printf '{"scenario":"%s","variant":"%s","flow":"%s","metric":"%s","unit":"%s","value":%s}\n' \
		"$scenario" "$variant" "$1" "$2" "$3" "$4" >&3
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

# load_policy: autocork_policy.ko, where this image has it.
load_policy() {
	modprobe autocork_policy 2>/dev/null && has_sysctl left net.ipv4.tcp_autocork_policy
}
