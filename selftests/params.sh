#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Parameters and sysctls: what is out of range is refused with EINVAL and the old value stays, at
# insmod, at modprobe and at a write; what the modules show; and that they write no sysctl that is
# not theirs (C16, C17, C18).

# shellcheck disable=SC2317 # cases are called by run_cases
. "$(dirname -- "$0")/lib.sh"

floor=/sys/module/tcp_dctcp_floor/parameters
policy=/proc/sys/net/ipv4/tcp_autocork_policy
available=/proc/sys/net/ipv4/tcp_available_autocork_policy
before=$(mktemp)
defer rm -f "$before"

# sysctls: all of them but those that count or tell the time.
sysctls() {
	sysctl -a 2>/dev/null |
		grep -Ev '^(kernel\.(random|ns_last_pid|pty|tainted)|fs\.(inode|dentry|file-nr|quota)|net\.netfilter|kernel\.(sched_domain|perf))' |
		sort
}

# write FILE TEXT: one write(2) of exactly these bytes.
write() {
	if [ ${#2} -lt 1000 ]; then
		printf '%b' "$2" >"$1"
	else
		printf '%b' "$2" | dd of="$1" bs=8192 iflag=fullblock status=none
	fi
}

only_own_sysctls() {
	local after
	sysctls >"$before"
	load tcp_dctcp_floor && load autocork_policy || return
	after=$(sysctls | diff "$before" - | grep '^[<>]')
	echo "$after"
	[ -n "$after" ] || void "the modules' own sysctls did not appear" || return
	# Whatever changed is one of ours, or the list of what is available.
	! grep -Ev '^> net\.ipv4\.tcp_((available_)?autocork|splice_nodelay)|^[<>] net\.ipv4\.tcp_available_congestion_control' <<<"$after"
}

# The log lines of the last load of each module.
log_lines() {
	local log
	log=$(dmesg | tail -n 40)
	grep 'tcp_dctcp_floor: .*not for the Internet' <<<"$log" | tail -n 1 | grep . &&
		grep 'autocork_policy: .*policy nodelay.*tcp_autocork_policy=stock' <<<"$log" | tail -n 1 | grep .
}

not_the_default() {
	expect "default algorithm" "$(sed -n 's/^net.ipv4.tcp_congestion_control = //p' "$before")" \
		"$(sysctl -n net.ipv4.tcp_congestion_control)" &&
		refused "dctcp_floor among those that anybody may use" "" \
			grep -w dctcp_floor /proc/sys/net/ipv4/tcp_allowed_congestion_control
}

modinfo_shows() {
	local shown
	shown=$(modinfo "$(module_file tcp_dctcp_floor)")
	grep '^parm: *dctcp_shift_g:.*(uint)$' <<<"$shown" &&
		grep '^parm: *dctcp_alpha_on_init:.*(uint)$' <<<"$shown" &&
		grep '^parm: *rto_floor:.*(bool)$' <<<"$shown" &&
		grep '^license: *GPL' <<<"$shown" &&
		grep '^description: .' <<<"$shown" &&
		grep '^vermagic: ' <<<"$shown" &&
		modinfo "$(module_file autocork_policy)" | grep '^description: .'
}

defaults() {
	expect dctcp_shift_g 4 "$(<"$floor/dctcp_shift_g")" &&
		expect dctcp_alpha_on_init 1024 "$(<"$floor/dctcp_alpha_on_init")" &&
		expect rto_floor Y "$(<"$floor/rto_floor")" &&
		expect tcp_autocork_policy nodelay "$(<"$policy")"
}

# taken and kept: PARAMETER GOOD BAD…
parameter() {
	local name=$1 good=$2 bad
	shift 2
	write "$floor/$name" "$good\n" || return
	expect "$name" "$good" "$(<"$floor/$name")" || return
	for bad; do
		refused "$name=$bad" "Invalid argument" write "$floor/$name" "$bad" &&
			expect "$name after $bad" "$good" "$(<"$floor/$name")" || return
	done
}

# A number that does not fit is ERANGE, by the kernel's own parser.
parameter_writes() {
	parameter dctcp_shift_g 10 11 -1 4294967295 "\n" x 3x "1 2" &&
		parameter dctcp_shift_g 0 11 &&
		parameter dctcp_alpha_on_init 0 1025 -1 2048 "\n" all &&
		parameter dctcp_alpha_on_init 1024 1025 &&
		refused "2^64" "Numerical result out of range" write "$floor/dctcp_shift_g" 18446744073709551616 &&
		parameter rto_floor N maybe 2 "\n" x &&
		parameter rto_floor Y maybe &&
		write "$floor/rto_floor" 0 && expect rto_floor N "$(<"$floor/rto_floor")"
}

insmod_refuses() {
	local bad
	rmmod tcp_dctcp_floor || return
	for bad in dctcp_shift_g=11 dctcp_shift_g=-1 dctcp_alpha_on_init=1025 rto_floor=maybe; do
		# insmod calls EINVAL by another name.
		refused "insmod $bad" "nvalid" load tcp_dctcp_floor "$bad" || return
		! loaded tcp_dctcp_floor || return
	done
	load tcp_dctcp_floor dctcp_shift_g=10 dctcp_alpha_on_init=0 rto_floor=N &&
		expect "at insmod" "10 0 N" \
			"$(<"$floor/dctcp_shift_g") $(<"$floor/dctcp_alpha_on_init") $(<"$floor/rto_floor")"
}

# modprobe finds the module by name, with the parameters of a modprobe.d: a tree of our own.
modprobe_refuses() {
	local root version
	rmmod tcp_dctcp_floor || return
	root=$(mktemp -d)
	defer rm -rf "$root"
	version=$(uname -r)
	mkdir -p "$root/lib/modules/$version/updates" "$root/etc/modprobe.d"
	cp "$(module_file tcp_dctcp_floor)" "$root/lib/modules/$version/updates/"
	depmod -b "$root" "$version" 2>/dev/null
	refused "modprobe dctcp_shift_g=11" "nvalid" modprobe -d "$root" tcp_dctcp_floor dctcp_shift_g=11 &&
		! loaded tcp_dctcp_floor || return
	echo "options tcp_dctcp_floor dctcp_alpha_on_init=1025" >"$root/etc/modprobe.d/bad.conf"
	refused "a modprobe.d of 1025" "nvalid" modprobe -d "$root" -C "$root/etc/modprobe.d" tcp_dctcp_floor &&
		! loaded tcp_dctcp_floor || return
	modprobe -d "$root" tcp_dctcp_floor dctcp_shift_g=3 && expect dctcp_shift_g 3 "$(<"$floor/dctcp_shift_g")"
}

policy_writes() {
	local good bad
	write "$policy" nodelay
	for good in $(<"$available") nodelay; do
		write "$policy" "$good" && expect policy "$good" "$(<"$policy")" || return
	done
	# With what shells and editors leave at the ends.
	write "$policy" "stock\n" && expect policy stock "$(<"$policy")" || return
	write "$policy" "  nodelay \n" && expect policy nodelay "$(<"$policy")" || return
	write "$policy" "stock\0" && expect policy stock "$(<"$policy")" || return
	write "$policy" nodelay || return
	for bad in bogus Stock stockx stoc "stock nodelay" " " "\n" 0 \
		"$(printf 'stock%0200d' 0)" "$(printf 'x%.0s' {1..5000})" "stock$(printf ' %.0s' {1..100})x"; do
		refused "policy '${bad:0:20}'" "Invalid argument" write "$policy" "$bad" &&
			expect "policy after '${bad:0:20}'" nodelay "$(<"$policy")" || return
	done
}

lists_are_read_only() {
	write "$policy" nodelay
	expect "mode of the list" 444 "$(stat -c %a "$available")" &&
		expect "mode of the policy" 644 "$(stat -c %a "$policy")" &&
		refused "the list" "ermi" write "$available" stock &&
		expect "the first of the list" stock "$(cut -d' ' -f1 "$available")" &&
		expect "mode of the counters" 444 "$(stat -c %a /proc/net/tcp_autocork_policy)" &&
		grep -q '^policy nodelay$' /proc/net/tcp_autocork_policy
}

# Numbers beside the policy, where this version has them: NAME LEAST MOST
number() {
	local file=/proc/sys/net/ipv4/$1 now bad
	if [ ! -e "$file" ]; then
		echo "$1: this version has none"
		return
	fi
	now=$(<"$file")
	[ "$now" -ge "$2" ] && [ "$now" -le "$3" ] || return
	for bad in $(($2 - 1)) $(($3 + 1)) x 1x 4294967296 18446744073709551616; do
		refused "$1=$bad" "" write "$file" "$bad" && expect "$1 after $bad" "$now" "$(<"$file")" || return
	done
	write "$file" "$2\n" && expect "$1" "$2" "$(<"$file")" &&
		write "$file" "$3\n" && expect "$1" "$3" "$(<"$file")" && write "$file" "$now"
}

numbers() {
	number tcp_autocork_deadline_us 10 40000 && number tcp_splice_nodelay 0 2
}

need modinfo modprobe depmod insmod rmmod sysctl diff dd
need_module tcp_dctcp_floor autocork_policy
run_cases \
	"loading changes no sysctl that is not the modules' own (C17):only_own_sysctls" \
	"the log lines at load say where it belongs and how to turn it off (C18):log_lines" \
	"dctcp_floor is not the default, nor open to everybody (C18):not_the_default" \
	"modinfo shows parameters and descriptions:modinfo_shows" \
	"defaults:defaults" \
	"parameters out of range are refused at a write, the old value stays:parameter_writes" \
	"parameters out of range are refused at insmod:insmod_refuses" \
	"parameters out of range are refused at modprobe and from modprobe.d:modprobe_refuses" \
	"policies that do not exist are refused, the old one stays:policy_writes" \
	"numbers out of range are refused, the old value stays:numbers" \
	"lists and counters are read-only:lists_are_read_only"
