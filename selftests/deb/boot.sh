#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The guest's half of virtme/test-deb.sh: what a booted machine with the packages must show:  lowtail=SETTING,KERNEL on the kernel's command line
#
#   loads      settings enabled: both modules are there, by the sysctl's autoload and by modules-load.d
#   unknown    module.sig_enforce=1, DKMS's key known to nobody: refused
#   enrolled   Secure Boot, DKMS's key enrolled as a MOK: loaded; unsigned or signed by another key: refused
#
# Each case is one line, `ok NAME` or `not ok NAME`, in /run/lowtail/results; `done` is the last.

setting=$(sed -n 's/.*\<lowtail=\([^, ]*\),\([^ ]*\).*/\1/p' /proc/cmdline)
kver=$(sed -n 's/.*\<lowtail=\([^, ]*\),\([^ ]*\).*/\2/p' /proc/cmdline)
mkdir -p /run/lowtail
# udev may be loading the transport just now: for a moment there is no such device.
for _ in {1..30}; do
	mount -t 9p -o trans=virtio,msize=65536 lowtail /run/lowtail && break
	sleep 1
done
exec >>/run/lowtail/results 2>/run/lowtail/errors
trap 'echo "done"; sync; dmesg >/run/lowtail/dmesg' EXIT

check() {
	local name=$1 said
	shift
	if said=$("$@" 2>&1); then
		echo "ok $name"
	else
		echo "# ${said//$'\n'/$'\n'# }"
		echo "not ok $name"
	fi
}

is() {
	[ "$1" = "$2" ] || {
		echo "got '$1', wanted '$2'"
		return 1
	}
}

loaded() { grep "^$1 " /proc/modules; }

# A connection of rpctail's, as ss sees it.
connection() {
	local client seen
	rpctail server --listen 127.0.0.1 --once &
	rpctail client --connect 127.0.0.1 --rate 50 --duration 4s --nodelay &
	client=$!
	sleep 3
	seen=$(ss -tinH 'dport = :7717')
	wait "$client" || return
	grep -w dctcp_floor <<<"$seen" || {
		echo "$seen"
		return 1
	}
}

complaints() {
	! dmesg | grep -E 'BUG:|WARNING:|Oops|cut here|general protection|panicked at|rcu.*stall|soft lockup|hung_task|refcount_t:'
}

# refused FILE: insmod fails, and for its signature.
refused() {
	local said
	if said=$(insmod "$1" 2>&1); then
		echo "$1 was loaded"
		return 1
	fi
	grep 'Key was rejected by service' <<<"$said" || {
		echo "$said"
		return 1
	}
}

case $setting in
loads)
	check "the kernel is $kver" is "$(uname -r)" "$kver"
	check "sysctl.d chose dctcp_floor" is "$(sysctl -n net.ipv4.tcp_congestion_control)" dctcp_floor
	check "which loaded tcp_dctcp_floor by its name" loaded tcp_dctcp_floor
	check "DKMS's build of it" grep "/$kver/updates/dkms/" <<<"$(modinfo -F filename tcp_dctcp_floor)"
	check "a connection runs it" connection
	check "modules-load.d loaded autocork_policy" loaded autocork_policy
	check "sysctl.d set its policy" is "$(sysctl -n net.ipv4.tcp_autocork_policy)" nodelay
	check "its hook sees tcp_push()" grep -E '^hook[[:space:]]+active' /proc/net/tcp_autocork_policy
	check "the kernel has no complaint" complaints
	;;
unknown)
	check "signatures are enforced" is "$(cat /sys/module/module/parameters/sig_enforce)" Y
	check "a module of Debian's loads" modprobe tcp_dctcp
	for m in tcp_dctcp_floor autocork_policy; do
		check "$m, signed by a key that the kernel does not know, is refused" refused "$(modinfo -n $m)"
	done
	;;
enrolled)
	check "Secure Boot: the kernel is locked down" grep -F '[integrity]' /sys/kernel/security/lockdown
	for m in tcp_dctcp_floor autocork_policy; do
		check "$m, signed by the MOK, loads" modprobe $m
	done
	check "a connection takes it" sysctl -w net.ipv4.tcp_congestion_control=dctcp_floor
	rmmod autocork_policy
	check "autocork_policy without a signature is refused" refused /run/lowtail/unsigned.ko
	check "autocork_policy signed by another key is refused" refused /run/lowtail/other-key.ko
	check "the kernel has no complaint" complaints
	;;
*)
	echo "not ok unknown setting '$setting'"
	;;
esac
