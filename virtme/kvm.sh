#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Say `kvm` when KVM really boots the stock kernel on this machine, else `tcg`:  virtme/kvm.sh [KVER]
#
# /dev/kvm may exist and still not run this kernel (an emulation failure, then a hang), so the only test is a boot:
# the kernel and a busybox that says one word.  The answer is kept until the machine's next boot.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# Seconds: a working KVM needs 2, a nested one on a busy machine several times that.
limit=${LOWTAIL_KVM_LIMIT:-20}
kver=${1:-$(kernel_chosen)}
case ${LOWTAIL_ACCEL:-} in
kvm | tcg)
	echo "$LOWTAIL_ACCEL"
	exit
	;;
esac
answer=$CACHE/accel-$(cut -d- -f1 /proc/sys/kernel/random/boot_id)
if [ ! -e "$answer" ]; then
	if [ ! -c /dev/kvm ]; then
		accel=tcg
	elif timeout -k 2 $((limit + 5)) "$TOP/virtme/enter.sh" -p -- sh -ec '
		mkdir -p /tmp/probe/bin /tmp/probe/dev && cd /tmp/probe
		cp /bin/busybox bin/
		mknod dev/console c 5 1
		printf "#!/bin/busybox sh\necho lowtail-kvm-works\n/bin/busybox poweroff -f\n" >init
		chmod +x init
		find . | cpio -o -H newc --quiet >/tmp/probe.cpio
		timeout -k 1 "$2" qemu-system-x86_64 -accel kvm -cpu host -m 512 -no-reboot -nodefaults -display none \
			-serial stdio -kernel "/usr/lib/modules/$1/vmlinuz" -initrd /tmp/probe.cpio \
			-append "console=ttyS0 quiet panic=-1" </dev/null >/tmp/probe.log 2>&1 &
		# An emulation failure stops the guest at once: no need to wait for the limit.
		while kill -0 $! 2>/dev/null; do
			grep -q -e lowtail-kvm-works -e "KVM internal error" /tmp/probe.log && break
			sleep 0.2
		done
		grep -q lowtail-kvm-works /tmp/probe.log' sh "$kver" "$limit" >/dev/null 2>&1; then
		accel=kvm
	else
		accel=tcg
	fi
	[ "$accel" = kvm ] || say "no working KVM here: guests run under TCG, which is slower and otherwise the same"
	echo "$accel" >"$answer.tmp.$$"
	mv "$answer.tmp.$$" "$answer"
fi
cat "$answer"
