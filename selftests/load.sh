#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Loading: both modules come and go, many times and under traffic; they are busy while sockets use
# them; a second insmod is a clean error; and dctcp_floor loads by its name where the module is only
# installed (C21, C25, C27).
#
# LOAD_COUNT: how many times (4; the CASES' thousand is LOAD_COUNT=1000).

# shellcheck disable=SC2317 # cases are called by run_cases
. "$(dirname -- "$0")/lib.sh"

count=${LOAD_COUNT:-4}
ns=lowtail-load-$$
modprobe=$(cat /proc/sys/kernel/modprobe)
release=$(uname -r)

on() {
	ip netns exec "$ns" "$@"
}

# start WHAT ALGORITHM: an endpoint in the background; returns when it says that it runs.
start() {
	local said
	coproc exec ip netns exec "$ns" "$here/endpoints.py" "$1" "$2" 2>/dev/null
	endpoint=$COPROC_PID
	read -r -t 60 said <&"${COPROC[0]}"
	[ -n "$said" ] && [ "$said" != ENOENT ]
}

stop() {
	kill "$endpoint" 2>/dev/null
	wait "$endpoint" 2>/dev/null
	return 0
}

gone() {
	! loaded "$1" && ! grep -qw "$1" /proc/modules
}

unload() {
	rmmod "$1" && gone "$1"
}

# A socket that was closed may hold its algorithm until what it sent last is acknowledged.
unload_when_idle() {
	wait_for 20 rmmod "$1" 2>/dev/null && gone "$1"
}

reload() {
	local i
	for ((i = 0; i < count; i++)); do
		load tcp_dctcp_floor || return
		load autocork_policy || return
		unload tcp_dctcp_floor || return
		unload autocork_policy || return
	done
	echo "$count times"
	! grep -qw dctcp_floor /proc/sys/net/ipv4/tcp_available_congestion_control &&
		[ ! -e /proc/sys/net/ipv4/tcp_autocork_policy ] && [ ! -e /proc/net/tcp_autocork_policy ] &&
		[ ! -e /proc/net/tcp_dctcp_floor ]
}

twice() {
	local name
	for name in tcp_dctcp_floor autocork_policy; do
		load "$name" && refused "a second insmod of $name" "File exists" load "$name" || return
		loaded "$name" && unload "$name" && load "$name" && unload "$name" || return
	done
}

busy() {
	load tcp_dctcp_floor && start hold dctcp_floor || return
	refused "rmmod in use" "in use" rmmod tcp_dctcp_floor || return
	loaded tcp_dctcp_floor || return
	stop
	unload_when_idle tcp_dctcp_floor
}

# The hook is not what sockets hold: it goes under their traffic.
hook_under_traffic() {
	local i seen=0
	start traffic reno || return
	for ((i = 0; i < count; i++)); do
		load autocork_policy || return
		sleep 0.02
		seen=$((seen + $(on awk '$1 == "covered" { print $2 }' /proc/net/tcp_autocork_policy)))
		unload autocork_policy || return
	done
	stop
	echo "$count times, $seen pushes seen"
	[ "$seen" -gt 0 ] || void "the traffic was not seen"
}

# Sockets that use it come and go while it is loaded and unloaded.
algorithm_under_traffic() {
	local i
	for ((i = 0; i < 2; i++)); do
		load tcp_dctcp_floor && start traffic dctcp_floor || return
		refused "rmmod under traffic" "in use" rmmod tcp_dctcp_floor || return
		stop
		unload_when_idle tcp_dctcp_floor || return
	done
}

# Namespaces come and go while the module that has state in each of them does.
namespaces() {
	local i
	for ((i = 0; i < 2; i++)); do
		ip netns add "$ns-$i" || return
		load autocork_policy || return
		ip netns exec "$ns-$i" cat /proc/sys/net/ipv4/tcp_autocork_policy || return
		[ $((i % 2)) = 0 ] || unload autocork_policy || return
		ip netns del "$ns-$i" || return
		[ $((i % 2)) = 1 ] || unload autocork_policy || return
	done
}

# The kernel asks modprobe for "tcp_NAME". Ours looks into a tree where the module is only installed.
only_installed() {
	root=$(mktemp -d)
	defer rm -rf "$root"
	mkdir -p "$root/lib/modules/$release/updates"
	cp "$(module_file tcp_dctcp_floor)" "$root/lib/modules/$release/updates/"
	depmod -b "$root" "$release" 2>/dev/null
	printf '#!/bin/sh\nmodprobe -d %s "$@" || exec %s "$@"\n' "$root" "$modprobe" >"$root/modprobe"
	chmod +x "$root/modprobe"
	defer sysctl -qw "kernel.modprobe=$modprobe"
}

autoload_by_sysctl() {
	local before
	only_installed
	before=$(sysctl -n net.ipv4.tcp_congestion_control)
	# In a root where it is installed for good this control does not hold, and says so.
	sysctl -qw kernel.modprobe=/nonexistent
	refused "without a modprobe" "No such file" sysctl -qw net.ipv4.tcp_congestion_control=dctcp_floor || return
	sysctl -qw "kernel.modprobe=$root/modprobe"
	sysctl -w net.ipv4.tcp_congestion_control=dctcp_floor && loaded tcp_dctcp_floor
	rc=$?
	sysctl -qw "net.ipv4.tcp_congestion_control=$before"
	[ "$rc" = 0 ] && unload_when_idle tcp_dctcp_floor
}

autoload_by_setsockopt() {
	expect "TCP_CONGESTION" dctcp_floor "$(on "$here/endpoints.py" set dctcp_floor)" &&
		loaded tcp_dctcp_floor && unload_when_idle tcp_dctcp_floor || return
	# Who may not load modules gets ENOENT, as with every algorithm that is not there.
	expect "without CAP_NET_ADMIN" ENOENT \
		"$(on setpriv --reuid=65534 --clear-groups "$here/endpoints.py" set dctcp_floor)" &&
		gone tcp_dctcp_floor
}

need ip python3 depmod modprobe setpriv
need_module tcp_dctcp_floor autocork_policy
ip netns add "$ns"
defer ip netns del "$ns"
ip -n "$ns" link set lo up
run_cases \
	"load and unload, $count times:reload" \
	"a second insmod is refused and changes nothing (C27):twice" \
	"busy while a socket uses it, gone cleanly afterwards (C25):busy" \
	"the hook is loaded and unloaded under traffic, $count times:hook_under_traffic" \
	"the algorithm under traffic: busy, then gone:algorithm_under_traffic" \
	"namespaces come and go beside it:namespaces" \
	"only installed: sysctl tcp_congestion_control loads it (C21):autoload_by_sysctl" \
	"only installed: setsockopt(TCP_CONGESTION) loads it (C21):autoload_by_setsockopt"
