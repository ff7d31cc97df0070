#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Boot the stock kernel in QEMU and run a command in it:  virtme/boot.sh [-c CPUS] [-m MEM] [-t SECONDS] CMD…
#
# Without CMD it is a shell.  The guest has the trixie root (writable, thrown away), the checkout at /lowtail (read-only
# but for out/) and, once `make modules` has run, both modules installed for modprobe.  Exit status is the command's; a
# guest that left none is a failed boot: it is booted once more, said aloud, and never taken for a pass.
#
#   124  the command was still running after SECONDS     125  two boots and no result

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

cpus=2 mem=2G limit=${LOWTAIL_LIMIT:-600} opts=()
# KASAN's shadow and kmemleak's records take their part.
[ -z "${KERNEL:-}" ] || mem=3G
while getopts c:m:t:o: opt; do
	case $opt in
	c) cpus=$OPTARG ;;
	m) mem=$OPTARG ;;
	t) limit=$OPTARG ;;
	o) opts+=("$OPTARG") ;;
	*) die "usage: boot.sh [-c CPUS] [-m MEM] [-t SECONDS] [-o VNG-OPTION]… [CMD…]" ;;
	esac
done
shift $((OPTIND - 1))

need_root
kver=$(kernel_chosen)
kernel_ready "$kver" || die "there is no kernel to boot yet" "make setup"
mkdir -p "$TOP/out/boot"

vng=(vng --run "/usr/lib/modules/$kver/vmlinuz" --user root --cpus "$cpus" --memory "$mem" --rwdir=/lowtail/out "${opts[@]}")
# What udev would load for QEMU's PC and no test touches; under TCG each costs a second.
vng+=(--append "modprobe.blacklist=kvm_amd,kvm_intel,ccp,ahci,sr_mod,sg,psmouse,pcspkr,iTCO_wdt,i6300esb,lpc_ich,i2c_i801,serio_raw,evdev,qemu_fw_cfg,aesni_intel")
# An Oops must end the boot, not leave a guest that seems to go on.
vng+=(--append oops=panic --append panic=-1)
# One report must not silence the next; a guest that waits for the host's CPUs is no stall of the kernel's; SLUB without
# its per-CPU sheaves, where the address of what was allocated last stays, and kmemleak takes it for a reference.
if [ -n "${KERNEL:-}" ]; then
	vng+=(--append kasan_multi_shot --append rcupdate.rcu_cpu_stall_timeout=120 --append slab_debug=F)
fi
[ "$("$TOP/virtme/kvm.sh" "$kver")" = kvm ] || vng+=(--disable-kvm)

enter=("$TOP/virtme/enter.sh" -p)
if [ "$KERNEL_ARCH" = arm64 ]; then
	image=$("$TOP/virtme/guest-arm64.sh")
	: >>"$TOP/out/boot/initramfs"
	enter+=(-b "$image:/lowtail/out/boot/initramfs")
fi
[ ! -e "$TOP/out/modules/$kver/modules.dep.bin" ] || enter+=(-m "$kver")

if [ $# = 0 ]; then
	[ "$KERNEL_ARCH" = amd64 ] || die "an arm64 guest has no shell yet" "virtme/boot.sh CMD…"
	say "a shell in the guest: modprobe tcp_dctcp_floor, modprobe autocork_policy; Ctrl-D ends the guest"
	cd "$TOP"
	exec "${enter[@]}" -- "${vng[@]}"
fi

dir=$(mktemp -d "$TOP/out/boot/XXXXXX")
inside=/lowtail/out/boot/${dir##*/}
# No virtme-ng: its guests run the root's own programs, and the root is not arm64's.
share() { printf 'local,path=%s,mount_tag=%s,security_model=none,multidevs=remap%s' "$1" "$2" "${3:-}"; }
# shellcheck disable=SC2054 # the commas are QEMU's
qemu=(qemu-system-aarch64 -M "virt,gic-version=3" -cpu max,pauth-impdef=on -smp "$cpus" -m "$mem"
	-nodefaults -nographic -no-reboot -serial stdio -kernel "/usr/lib/modules/$kver/vmlinuz"
	-initrd /lowtail/out/boot/initramfs
	-virtfs "$(share "/usr/lib/modules/$kver" modules ,readonly=on)"
	-virtfs "$(share /lowtail lowtail ,readonly=on)" -virtfs "$(share /lowtail/out out)"
	-append "console=ttyAMA0 quiet panic=-1 oops=panic lowtail.dir=$inside")
chmod 755 "$dir"
printf '%q ' "$@" >"$dir/cmd"

# QEMU opens the standard output that vng hands it by name and truncates it: never give it a file of the caller's, or all
# that was said before the boot is gone.
boot() {
	local cmd=("${enter[@]}" -- "${vng[@]}" "$@" -- "bash /lowtail/virtme/guest.sh $inside")
	[ "$KERNEL_ARCH" != arm64 ] || cmd=("${enter[@]}" -- "${qemu[@]}")
	{ timeout -k 5 "$limit" "${cmd[@]}" </dev/null 2>&1 3>&- | cat >&3; } 3>&1
}

# The second boot of Debian's takes the older 9p file system, in case it was virtiofs that failed, and lets the kernel talk.
again='--force-9p --verbose'
# A root of 9p takes an initramfs and so modules, which a kernel of our own has not.
[ -z "${KERNEL:-}" ] || again=--verbose
for again in '' "$again"; do
	rm -f "$dir/booted" "$dir/rc"
	rc=0
	# shellcheck disable=SC2086 # two options
	boot $again || rc=$?
	if [ -e "$dir/rc" ]; then
		rc=$(cat "$dir/rc")
		# What was run and said stays only where it did not succeed.
		[ "$rc" != 0 ] || [ -n "${LOWTAIL_KEEP:-}" ] || rm -rf "$dir"
		exit "$rc"
	fi
	if [ -e "$dir/booted" ] && [ "$rc" = 124 ]; then
		say "the guest's command was still running after $limit s: $(cat "$dir/cmd")(log in out/boot/${dir##*/})"
		exit 124
	fi
	[ -n "$again" ] || say "the guest left no result (vng's exit $rc, $(
		[ -e "$dir/booted" ] && echo 'it had booted' || echo 'it did not get as far as the command'
	)): booting again, once"
done
say "two boots and no result: this counts as failed (see out/boot/${dir##*/})"
exit 125
