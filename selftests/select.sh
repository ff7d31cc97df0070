#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Selection: by sysctl, by setsockopt(TCP_CONGESTION), by route, in the first network namespace and
# in a child, by who may and who may not; the same as stock dctcp in everything (C20, C21).

# shellcheck disable=SC2317 # cases are called by run_cases
. "$(dirname -- "$0")/lib.sh"

ns=lowtail-select-$$
allowed=/proc/sys/net/ipv4/tcp_allowed_congestion_control
before=$(sysctl -n net.ipv4.tcp_congestion_control)
before_allowed=$(cat "$allowed")

# endpoints ARGUMENT…: in the child namespace, whose loopback is ours alone.
endpoints() {
	ip netns exec "$ns" "$here/endpoints.py" "$@"
}

# nobody COMMAND…: without any capability.
nobody() {
	ip netns exec "$ns" setpriv --reuid=65534 --clear-groups "$@"
}

not_there() {
	expect "setsockopt of what is not there" ENOENT "$(endpoints set dctcp_floo)" &&
		refused "the sysctl" "No such file" sysctl -qw net.ipv4.tcp_congestion_control=dctcp_floo
}

by_sysctl() {
	grep -w dctcp_floor /proc/sys/net/ipv4/tcp_available_congestion_control &&
		sysctl -w net.ipv4.tcp_congestion_control=dctcp_floor &&
		expect "a connection's algorithm" dctcp_floor "$("$here/endpoints.py" default)"
	rc=$?
	sysctl -qw "net.ipv4.tcp_congestion_control=$before"
	return "$rc"
}

by_setsockopt() {
	expect "TCP_CONGESTION" dctcp_floor "$(endpoints set dctcp_floor)"
}

by_route() {
	local name to
	for to in 192.0.2.9 2001:db8::9; do
		ip -n "$ns" addr add "$to" dev lo 2>/dev/null
	done
	expect "the control" "$before" "$(endpoints default 192.0.2.9)" ||
		void "something else selects an algorithm" || return
	for name in dctcp dctcp_floor; do
		ip -n "$ns" route replace local 192.0.2.9 dev lo table local congctl "$name" || return
		ip -n "$ns" -6 route del local 2001:db8::9 dev lo table local 2>/dev/null
		ip -n "$ns" -6 route add local 2001:db8::9 dev lo table local congctl "$name" || return
		expect "by an IPv4 route" "$name" "$(endpoints default 192.0.2.9)" &&
			expect "by an IPv6 route" "$name" "$(endpoints default 2001:db8::9)" || return
	done
	ip -n "$ns" route show table local | grep congctl
	ip -n "$ns" route flush table local 192.0.2.9
	ip -n "$ns" -6 route flush table local 2001:db8::9
	return 0
}

# holders NAME: references to an algorithm's module.
holders() { cat "/sys/module/tcp_$1/refcnt"; }

# refused_sysctl NAME ERROR COMMAND…: the sysctl is refused, and no reference is kept. Before 7.3 core TCP took one before
# it looked whether it may (tcp_set_default_congestion_control()), and rmmod was refused until the next boot: where that
# is seen with stock dctcp it is not done to ours.
refused_sysctl() {
	local name=$1 error=$2 held
	shift 2
	if [ -e "$kept" ] && [ "$name" != dctcp ]; then
		echo "this kernel keeps a reference at each refusal, seen with dctcp: $name is not asked for"
		return
	fi
	held=$(holders "$name")
	refused "sysctl $name" "$error" "$@" "net.ipv4.tcp_congestion_control=$name" || return
	[ "$(holders "$name")" != "$held" ] || return 0
	[ "$name" = dctcp ] || expect "references to $name" "$held" "$(holders "$name")" || return
	: >"$kept"
}

# What both are in a child namespace: restricted, until the first namespace allows it.
in_a_child() {
	local name
	for name in dctcp dctcp_floor; do
		echo "$before_allowed" >"$allowed"
		refused_sysctl "$name" "not permitted" ip netns exec "$ns" sysctl -qw &&
			expect "setsockopt $name without CAP_NET_ADMIN" EPERM \
				"$(nobody "$here/endpoints.py" set "$name")" || return
		echo "$before_allowed $name" >"$allowed"
		ip netns exec "$ns" sysctl -w "net.ipv4.tcp_congestion_control=$name" &&
			expect "the child's default" "$name" "$(endpoints default)" &&
			expect "setsockopt $name, allowed" "$name" "$(nobody "$here/endpoints.py" set "$name")" || return
		ip netns exec "$ns" sysctl -qw "net.ipv4.tcp_congestion_control=$before"
	done
	echo "$before_allowed" >"$allowed"
}

# A user namespace's root may configure its network, but not choose what is restricted.
in_a_user_namespace() {
	local name
	for name in dctcp dctcp_floor; do
		refused_sysctl "$name" "" unshare -Urn sysctl -qw &&
			unshare -Urn sh -c "ip link set lo up
				ip route replace local 127.0.0.1 dev lo table local congctl $name
				'$here/endpoints.py' default" | grep -x "$name" || return
	done
}

# An installed module is loaded when its name is asked for; ENOENT needs one that is nowhere.
need ip python3 sysctl setpriv unshare
modprobe -q tcp_dctcp || skip_all "tcp_dctcp is missing (CONFIG_TCP_CONG_DCTCP), and it is the control"
need_module tcp_dctcp_floor
load tcp_dctcp_floor
kept=$(mktemp -u)
defer rm -f "$kept"
defer sysctl -qw "net.ipv4.tcp_congestion_control=$before"
defer sysctl -qw "net.ipv4.tcp_allowed_congestion_control=$before_allowed"
ip netns add "$ns"
defer ip netns del "$ns"
ip -n "$ns" link set lo up
run_cases \
	"a name that is nowhere is ENOENT:not_there" \
	"by sysctl:by_sysctl" \
	"by setsockopt(TCP_CONGESTION):by_setsockopt" \
	"by ip route … congctl, IPv4 and IPv6, in a child namespace:by_route" \
	"in a child namespace: EPERM until the first one allows it, as dctcp (C20):in_a_child" \
	"in a user namespace: not by sysctl, but by route, as dctcp (C20):in_a_user_namespace"
