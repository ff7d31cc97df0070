#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Take from each scenario the fault that its control has to show, and see that it says so:  virtme/voids.sh [SCENARIO…]   (KTAP)
#
# A planting is a change to the scenario's script, for one boot: autocorking off where it has to hold, no marks where
# it needs them, no losses, a flow too few.  The verdict has to be void, or failed, for the reason given here; a scenario
# that calls such a boot a result would call anything one.  Runs inside the Debian root (virtme/enter.sh); verdicts in
# out/voids.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# SCENARIO@what is planted@sed expression@verdict (extended regular expression)
plantings() {
	cat <<-'END'
		T0@autocorking off from the start@s/^settle$/&; set_sysctl left net.ipv4.tcp_autocorking 0/@void: stock did not autocork
		T0-web@autocorking off from the start@s/^settle$/&; set_sysctl left net.ipv4.tcp_autocorking 0/@void: stock did not autocork \(tomcat\).*\(proxied\)
		T0-slow@completions come at once@/lowtail_faults.late=/d@void: stock's hold at p50
		T1@no wake-up is lost@s/^each=10000$/each=1000000000/@void: the fault took no wake-up from stock
		T2@the forwarder sets NODELAY@s/\(--listen 127.0.0.1:6001 --connect 127.0.0.1:5432\) /\1 --nodelay /@void: the forwarder without NODELAY .* is not ten times slower
		T3@autocorking off from the start@s/^both stock$/set_sysctl left net.ipv4.tcp_autocorking 0; &/@void: stock did not autocork
		T4@dropped where it would be marked@s/^step=30000$/&\neval "$(declare -f marking | sed "s, ecn,,")"/@void: no CE mark under dctcp
		T4-loss@no packet is lost@s/^losing() {$/&\nset -- 0/; s/^faults() {$/&\nreturn 0/@void: stock dctcp was never seen below 2 packets.*no timeout.*no retransmission.*no lone packet
		T4-cwnd@dropped where it would be marked@s/^step=30000$/&\neval "$(declare -f marking | sed "s, ecn,,")"/@failed: .*flows of 9 in the trace
		T4-cwnd@no packet is lost@s/echo 100 || echo 0/echo 0 || echo 0/@void: stock dctcp was never below 2 packets
		T4-cwnd@a connection a kind too few@s/name=$kind,conns=3/name=$kind,conns=2/@failed: .*flows of 9 in the trace
		incast@neither a step nor a limit@s/^\tmarking "$step" "$shallow"$/\tmarking 900000 "$deep"/@void: 48 answers at once made neither
		sweep@the step is never reached@s/^step=30000$/step=900000/; s/1 4 16 48/4/; s/^shallow=60000/shallow=950000/@void: no CE mark under dctcp with 4 senders
		trace@no mark and no loss ever@s/ loss random "$[12]%" seed [12]\( ecn\)\{0,1\}//@void: stock's window never fell below 2
	END
}

wanted=("$@")
for s; do
	plantings | cut -d@ -f1 | grep -qx -- "$s" ||
		die "nothing is planted in '$s'" "choose of: $(plantings | cut -d@ -f1 | uniq | paste -sd' ')"
done
dir=$TOP/out/voids
mkdir -p "$dir"
n=0 failed=0
result() {
	n=$((n + 1))
	[ "$1" = ok ] || failed=$((failed + 1))
	echo "$1 $n $2"
}

echo "TAP version 13"
while IFS='@' read -r scenario what change verdict; do
	[ ${#wanted[@]} = 0 ] || [[ " ${wanted[*]} " = *" $scenario "* ]] || continue
	name="$scenario: $what"
	tree=$(mktemp -d)
	mkdir "$tree/scenarios"
	sed "$change" "$TOP/selftests/scenarios/$scenario.sh" >"$tree/scenarios/$scenario.sh"
	if cmp -s "$TOP/selftests/scenarios/$scenario.sh" "$tree/scenarios/$scenario.sh"; then
		rm -rf "$tree"
		result "not ok" "$name: the planting changes nothing; its line in virtme/voids.sh is out of step"
		continue
	fi
	(cd "$tree" && echo "scenarios/$scenario.sh" | cpio -o -H newc --quiet) >"$dir/overlay.cpio"
	rm -rf "$tree"
	OVERLAY=$dir/overlay.cpio OUT=$dir IMAGE_DIR=$TOP/out/vtime/image-$KVER "$TOP/virtme/vtime.sh" "$scenario" >"$dir/$scenario.log" 2>&1 </dev/null || :
	seen=$(tail -n 1 "$dir/vtime/$scenario.port" 2>/dev/null | sed -n 's/^verdict //p')
	echo "# $seen"
	if [[ $seen =~ ^($verdict) ]]; then
		result ok "$name"
	else
		result "not ok" "$name: the verdict is not '$verdict'"
	fi
done < <(plantings)
echo "1..$n"
[ "$failed" = 0 ]
