#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Beside our hook on tcp_push(): a kprobe, the function tracer and, where there are bpftrace and BTF, a BPF
# program at its entry (fentry), put there before and after it and taken away before and after it, and
# ftrace turned off under it (C26). All of them must go on working, the hook included; when the hook is
# not in effect, what the module says about it is looked at. A livepatch is livepatch.py's.

# shellcheck disable=SC2317 # cases are called by run_cases
. "$(dirname -- "$0")/lib.sh"

tracing=/sys/kernel/tracing
instance=$tracing/instances/lowtail-beside
ns=lowtail-beside-$$
# What the other has seen.
trace=$instance/trace

# traffic: the time in which the endpoint in the background pushes some hundred times.
traffic() {
	sleep 0.5
}

# covered: pushes that the hook has seen in that namespace.
covered() {
	ip netns exec "$ns" awk '$1 == "covered" { print $2 }' /proc/net/tcp_autocork_policy
}

kprobe_on() {
	echo "p:lowtail_beside/push tcp_push" >>"$tracing/kprobe_events" &&
		mkdir "$instance" && echo 1 >"$instance/events/lowtail_beside/push/enable"
}

kprobe_off() {
	echo 0 >"$instance/events/enable"
	rmdir "$instance"
	echo "-:lowtail_beside/push" >>"$tracing/kprobe_events"
}

tracer_on() {
	mkdir "$instance" && echo tcp_push >"$instance/set_ftrace_filter" && echo function >"$instance/current_tracer"
}

tracer_off() {
	echo nop >"$instance/current_tracer"
	rmdir "$instance"
}

# bpftrace makes the program; each push is a line.
fentry_on() {
	trace=$(mktemp)
	bpftrace -B none -e 'fentry:tcp_push { printf("tcp_push\n"); }' >>"$trace" 2>&1 &
	bpftrace=$!
	wait_for 60 fentry_began
	grep -q '^tcp_push' "$trace" && return
	sed 's/^/bpftrace: /' "$trace"
	return 1
}

fentry_began() {
	grep -q '^tcp_push' "$trace" || ! kill -0 "$bpftrace" 2>/dev/null
}

fentry_off() {
	[ -n "$bpftrace" ] || return 0
	kill "$bpftrace" 2>/dev/null
	wait "$bpftrace"
	rm -f "$trace"
	bpftrace='' trace=$instance/trace
}

# both: hook and other see the traffic.
both() {
	local before seen
	before=$(covered)
	echo >"$trace"
	traffic
	seen=$(grep -c tcp_push "$trace")
	echo "hook: $(($(covered) - before)) pushes, the other: $seen"
	[ "$(covered)" -gt "$before" ] && [ "$seen" -gt 0 ]
}

# other_alone: the other still works when the hook has gone.
other_alone() {
	echo >"$trace"
	traffic
	grep -q tcp_push "$trace"
}

# hook_alone: the hook still sees the traffic when the other has gone.
hook_alone() {
	local before
	before=$(covered)
	traffic
	[ "$(covered)" -gt "$before" ]
}

# order OTHER: the other first, then the hook first; of either pair each goes first once.
order() {
	"$1_on" || return
	other_alone || void "$1 does not see tcp_push" || return
	load autocork_policy && both && rmmod autocork_policy && other_alone || return
	load autocork_policy && both || return
	"$1_off"
	hook_alone || return
	"$1_on" && both && rmmod autocork_policy && other_alone || return
	"$1_off"
	load autocork_policy && "$1_on" && both || return
	"$1_off"
	hook_alone && rmmod autocork_policy
}

kprobe() { order kprobe; }
tracer() { order tracer; }
fentry() { order fentry; }

# ftrace_goes_off: kernel.ftrace_enabled=0 took. 7.x answers EOPNOTSUPP and ftrace stays on.
ftrace_goes_off() {
	sysctl -w kernel.ftrace_enabled=0 2>&1
	[ "$(sysctl -n kernel.ftrace_enabled)" = 0 ] && return
	echo "this kernel does not turn ftrace off"
	return 1
}

# in_effect: the hook sees traffic, or /proc/net/tcp_autocork_policy says that it does not, within the interval of the
# module's own look.
in_effect() {
	local before
	before=$(covered)
	traffic
	echo "hook: $(($(covered) - before)) pushes"
	[ "$(covered)" -gt "$before" ] || { wait_for 40 not_active && grep '^hook' /proc/net/tcp_autocork_policy; }
}

not_active() { ! says active; }

ftrace_off() {
	local rc
	load autocork_policy && in_effect || return
	ftrace_goes_off
	in_effect
	rc=$?
	sysctl -qw kernel.ftrace_enabled=1
	[ "$rc" = 0 ] && in_effect && wait_for 40 says active
	rc=$?
	# Whatever came of it: the next case loads it itself.
	rmmod autocork_policy && return "$rc"
}

loaded_while_off() {
	local rc=0
	ftrace_goes_off
	if load autocork_policy; then
		in_effect
		rc=$?
		rmmod autocork_policy || rc=1
	else
		echo "refused, which is as good"
	fi
	sysctl -qw kernel.ftrace_enabled=1
	return "$rc"
}

# says STATE: what /proc/net/tcp_autocork_policy tells about the hook.
says() {
	grep -qx "hook $1" /proc/net/tcp_autocork_policy
}

# log_has TEXT: the kernel's log of this test.
log_has() {
	dmesg | sed -n "/$mark/,\$p" | grep -F "$1"
}

# ftrace no longer calls the hook (beside/lowtail_unhook.c): within the interval of the module's own look
# at it, 15 s, /proc and the log say so, and again when it is back.
unhooked() {
	local rc
	goes_and_comes
	rc=$?
	! loaded lowtail_unhook || rmmod lowtail_unhook
	rmmod autocork_policy && return "$rc"
}

goes_and_comes() {
	local before
	before=$(dmesg | grep -c 'hook on tcp_push() is')
	load autocork_policy && hook_alone && says active || return
	load lowtail_unhook "list=0x$(awk '$3 == "ftrace_ops_list" { print $1 }' /proc/kallsyms)" || return
	if hook_alone; then
		void "the hook still sees the traffic"
		return
	fi
	says active && echo "not found out yet"
	wait_for 40 says inactive && log_has 'the hook on tcp_push() is not in effect' || return
	rmmod lowtail_unhook && hook_alone || return
	wait_for 40 says active && log_has 'the hook on tcp_push() is in effect again' || return
	# Once each, not at every look.
	expect "lines in the log" $((before + 2)) "$(dmesg | grep -c 'hook on tcp_push() is')"
}

need ip python3 sysctl
[ -e "$tracing/kprobe_events" ] || mount -t tracefs tracefs "$tracing" 2>/dev/null
[ -e "$tracing/kprobe_events" ] || skip_all "no tracefs with kprobe events (CONFIG_KPROBE_EVENTS)"
need_module autocork_policy
defer sysctl -qw kernel.ftrace_enabled=1
bpftrace=''
defer fentry_off
defer kprobe_off
defer tracer_off
ip netns add "$ns"
defer ip netns del "$ns"
ip -n "$ns" link set lo up
coproc exec ip netns exec "$ns" "$here/endpoints.py" traffic reno
defer kill "$COPROC_PID"
read -r -t 60 _ <&"${COPROC[0]}" || skip_all "python3 does not start"
bpf=()
if command -v bpftrace >/dev/null && [ -e /sys/kernel/btf/vmlinux ]; then
	bpf=("a BPF program at the entry of tcp_push (fentry), before and after the hook:fentry")
fi
inactive=()
if [ -n "$(module_file lowtail_unhook)" ]; then
	defer rmmod lowtail_unhook
	inactive=("the hook is registered and not called: said to be inactive, and active again:unhooked")
fi
run_cases \
	"a kprobe on tcp_push, before and after the hook:kprobe" \
	"the function tracer on tcp_push, before and after the hook:tracer" \
	"${bpf[@]}" \
	"${inactive[@]}" \
	"ftrace_enabled=0 under the hook: in effect, or said not to be:ftrace_off" \
	"loaded while ftrace_enabled=0: refused, in effect, or said not to be:loaded_while_off"
