#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# vtime.sh [SCENARIO...]: boot one guest a scenario in virtual time and write
# out/SCENARIO.json, an array of records
#   {"scenario","variant","flow","metric","unit","value"}
# that is the same to the bit at every run, whatever the host is doing.
#
# Touches: $OUT and $IMAGE_DIR. Runs inside the Debian root (virtme/enter.sh).
#
#   KVER       release of the stock kernel
#   OUT        where results go (default out/); consoles and raw ports in $OUT/vtime
#   IMAGE_DIR  see image.sh
#   LOWTAIL_JOBS   guests at a time (default: two, or one on a single core)
#   SEED       another number, another boot: what is rare is dealt anew (default 1)
#   OVERLAY    a cpio archive that the kernel unpacks over the image (virtme/voids.sh plants by it)
#   LOWTAIL_LIMIT  seconds of wall time after which a guest counts as hung (default 300; one with a web server, three times that)
#
# Exit: 0 every scenario gave a verdict and none failed (a void one says so and
# counts as a verdict); 1 one failed or gave no verdict twice; 2 usage.
#
# Virtual time: -icount shift=0 makes one guest instruction one nanosecond and
# sleep=off skips idle time, so that what the guest measures depends on what it
# executes and on nothing else. One CPU in one thread, the clock, the random seed
# and the CPU's own random numbers are fixed or off; nothing is read from the
# host once the guest runs, results leave by a virtio port; QEMU's two threads take
# turns (virtme/turns.c).

set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
: "${KVER:?vtime.sh: KVER, the kernel release, is not set}"
out=${OUT:-$here/out}
raw=$out/vtime
export KVER IMAGE_DIR=${IMAGE_DIR:-$raw/image-$KVER}
limit=${LOWTAIL_LIMIT:-300}
seed=${SEED:-1}
jobs=${LOWTAIL_JOBS:-$(($(nproc) < 2 ? 1 : 2))}

# Longest first, so that two guests at a time end at about the same moment.
all=(T4-loss T4 T2 T3 T0)

# random.trust_*: no seed from outside. mitigations=off and nokaslr: fewer
# instructions that the comparison is not about. oops=panic: an Oops ends the
# boot, which then has no verdict. tsc=reliable: the instruction counter is the
# one clock there is; no watchdog may vote it out.
cmdline="console=ttyS0 quiet panic=-1 oops=panic mitigations=off nokaslr
 random.trust_cpu=off random.trust_bootloader=off tsc=reliable
 cryptomgr.notests=1"

if ! [[ $seed =~ ^[1-9][0-9]{0,8}$ ]]; then
	echo "vtime.sh: SEED=$seed is no number from 1 to 999999999" >&2
	exit 2
fi
# Without an argument of its own the boot of seed 1 is the one that it has always been.
[ "$seed" = 1 ] || cmdline="$cmdline SEED=$seed"

usage() {
	sed -n '4,/^$/s/^# \{0,1\}//p' "$0"
}

scenarios=()
for arg; do
	case $arg in
	-h | --help)
		usage
		exit 0
		;;
	*)
		if [ ! -e "$here/selftests/scenarios/$arg.sh" ]; then
			echo "vtime.sh: no scenario '$arg' in selftests/scenarios" >&2
			exit 2
		fi
		scenarios+=("$arg")
		;;
	esac
done
if [ ${#scenarios[@]} = 0 ]; then
	for s in "${all[@]}"; do
		[ ! -e "$here/selftests/scenarios/$s.sh" ] || scenarios+=("$s")
	done
fi

# The image of a scenario is in its header, where it is not the base.
image_of() {
	local kind
	kind=$(sed -n 's/^# Image: //p' "$here/selftests/scenarios/$1.sh")
	echo "${kind:-base}"
}

# memory_of KIND: of the guest, MB. All that is in the image is in memory.
memory_of() {
	case $1 in
	web) echo 1536 ;;
	*) echo 768 ;;
	esac
}

# limit_of KIND: seconds. A JVM's start, and its first requests, are many instructions.
limit_of() {
	case $1 in
	web) echo $((limit * 3)) ;;
	*) echo "$limit" ;;
	esac
}

# boot SCENARIO: one guest, from start to power-off. Two e1000e back to back on
# a hub inside QEMU (a scenario that needs none leaves them down): sending is
# part of the register write and completions are interrupts, both in virtual time.
boot() {
	local s=$1 e1000e=e1000e,romfile= file initrd
	local counter=()
	initrd=$IMAGE_DIR/$(image_of "$s").cpio
	if [ -n "${OVERLAY:-}" ]; then
		cat "$initrd" "$OVERLAY" >"$raw/$s.cpio"
		initrd=$raw/$s.cpio
	fi
	[ "$s" != ack ] || counter=(-plugin "$IMAGE_DIR/count.so,out=$raw/$s.count")
	for file in port console qemu; do
		[ ! -e "$raw/$s.$file" ] || mv "$raw/$s.$file" "$raw/$s.$file.before"
	done
	# Whatever ends this script ends the guest.
	setpriv --pdeathsig TERM timeout -k 5 "$(limit_of "$(image_of "$s")")" \
		env LD_PRELOAD="$IMAGE_DIR/turns.so" qemu-system-x86_64 \
		-M pc -m "$(memory_of "$(image_of "$s")")M" -smp 1 -nodefaults -nographic -no-reboot \
		-accel tcg,thread=single -icount shift=0,sleep=off,align=off \
		-rtc base=2026-01-01T00:00:00,clock=vm -seed "$seed" \
		-cpu max,-rdrand,-rdseed "${counter[@]}" \
		-kernel "$IMAGE_DIR/vmlinux" -initrd "$initrd" \
		-append "${cmdline//$'\n'/} SCENARIO=$s" \
		-netdev hubport,id=a,hubid=0 -device "$e1000e,netdev=a,mac=52:54:00:00:00:01" \
		-netdev hubport,id=b,hubid=0 -device "$e1000e,netdev=b,mac=52:54:00:00:00:02" \
		-device isa-debug-exit,iobase=0x501,iosize=1 \
		-device virtio-serial-pci,ioeventfd=off \
		-chardev "file,id=results,path=$raw/$s.port" \
		-device virtserialport,chardev=results,name=lowtail.results \
		-serial "file:$raw/$s.console" \
		</dev/null 2>"$raw/$s.qemu"
}

# The guest's last line is its verdict; nothing else counts as one.
verdict_of() {
	tail -n 1 "$raw/$1.port" 2>/dev/null | sed -n 's/^verdict //p'
}

# run SCENARIO: boot, once more if no verdict came, then records to JSON.
run() {
	local s=$1 start=$SECONDS status verdict try
	follow "$s" "$BASHPID"
	for try in 1 2; do
		status=0
		boot "$s" || status=$?
		verdict=$(verdict_of "$s")
		[ -n "$verdict" ] && break
		echo "$s: no verdict (qemu ended with $status after $((SECONDS - start)) s; 124 is the wall-time limit)" \
			"$([ "$try" = 1 ] && echo "- a failed boot, booting once more")"
		tail -n 15 "$raw/$s.qemu" "$raw/$s.console" 2>/dev/null | tr -d '\r'
	done
	{
		sed -n '/^{/p' "$raw/$s.port"
		if [ -e "$raw/$s.count" ] && [ -n "$verdict" ]; then
			"$here/virtme/shares.sh" "$raw/$s.port" "$raw/$s.count"
		fi
	} | awk 'BEGIN { printf "[" }
		{ printf "%s\n%s", (NR > 1 ? "," : ""), $0 } END { print "\n]" }' >"$out/$s.json.new"
	mv "$out/$s.json.new" "$out/$s.json"
	# What the report says of this run; runs are comparable to the bit where it is the same.
	{
		echo "command: make scenarios SCENARIOS=$s$([ "$seed" = 1 ] || echo " SEED=$seed")"
		echo "kernel: $KVER"
		echo "emulator: $(qemu-system-x86_64 --version | sed -n 1p)"
		echo "mode: virtual time, -icount shift=0,sleep=off, one CPU, -seed $seed"
		grep -E " (vmlinux|\./$(image_of "$s")\.cpio)\$" "$raw/images.sha256"
	} >"$raw/$s.run"
	echo "$s: ${verdict:-failed: two boots without a verdict} ($((SECONDS - start)) s)"
	case $verdict in
	ok | void*) return 0 ;;
	esac
	sed -n 's/^log /  /p' "$raw/$s.port" | tail -n 40
	return 1
}

# follow SCENARIO PID: on a terminal the guest's own progress lines are shown as
# they come, until PID, this scenario's run, ends.
follow() {
	[ -t 1 ] || return 0
	tail -n +1 -s 0.3 -F --pid="$2" "$raw/$1.port" 2>/dev/null | sed -un "s/^# /$1: /p" &
}

mkdir -p "$raw"
for kind in $(for s in "${scenarios[@]}"; do image_of "$s"; done | sort -u); do
	"$here/virtme/image.sh" "$kind" >/dev/null
done
for file in turns count; do
	gcc -O2 -Wall -Werror -shared -fPIC -o "$IMAGE_DIR/$file.so" "$here/virtme/$file.c"
done
# Records are comparable to the bit where these are equal.
(cd "$IMAGE_DIR" && sha256sum vmlinux ./*.cpio) >"$raw/images.sha256"

failed=0
running=0
runs=()
trap '[ ${#runs[@]} = 0 ] || kill "${runs[@]}" 2>/dev/null || :' EXIT
trap 'exit 130' INT TERM
echo "virtual time: ${scenarios[*]} on $KVER, $jobs guests at a time"
for s in "${scenarios[@]}"; do
	if [ "$running" -ge "$jobs" ]; then
		wait -n || failed=1
		running=$((running - 1))
	fi
	run "$s" &
	runs+=($!)
	running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
	wait -n || failed=1
	running=$((running - 1))
done
exit "$failed"
