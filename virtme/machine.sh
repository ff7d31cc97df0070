# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A Debian machine to try the packages on: trixie as it is installed, with an older kernel of backports.  Sourced by
# virtme/test-deb.sh.
#
# The machine is a folder, where apt, dpkg and DKMS run natively in a chroot, and a disk made of it, which QEMU boots.  The
# freshly installed one is kept in the cache; what is done to it is done to a copy, $MACHINE.

MACHINE=$TOP/out/deb/machine
# What the guest's half reads and writes (selftests/deb/boot.sh).
SHARE=$TOP/out/deb/share

machine_packages() {
	echo apt,ca-certificates,e2fsprogs,init,initramfs-tools,iproute2,kmod,procps,systemd-sysv,udev,zstd
}

# The newest kernel of another series than the one of the set-up: what the machine is upgraded from.
old_kernel() {
	our_apt apt-cache pkgnames linux-image-7 |
		sed -n "s/^linux-image-\([0-9][^-]*+deb[0-9]*-$DEB_ARCH\)$/\1/p" | sort -Vr |
		awk -F. -v new="$1" 'BEGIN { split(new, n, ".") } $1 "." $2 != n[1] "." n[2] { if (!c++) print }'
}

deb_version() {
	our_apt apt-cache show "linux-headers-$1" | awk '$1 == "Version:" && !n++ { print $2 }'
}

# in_machine FOLDER CMD…: with names, certificates and proxies of the host's; packages that were downloaded are kept.
in_machine() {
	mkdir -p "$CACHE/machine-archives/partial"
	# shellcheck disable=SC2016 # expanded inside
	unshare --mount --propagation private --pid --fork --kill-child -- bash -euc '
		m=$1 archives=$2
		shift 2
		mount --bind "$m" "$m"
		mount -t proc proc "$m/proc"
		mount --rbind /sys "$m/sys"
		mount --rbind /dev "$m/dev"
		mount -t tmpfs -o mode=1777 tmpfs "$m/tmp"
		mount -t tmpfs -o mode=755 tmpfs "$m/run"
		mount --bind "$archives" "$m/var/cache/apt/archives"
		for f in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
			if [ -s "$f" ] && [ -e "$m$f" ]; then mount --bind "$(readlink -f "$f")" "$m$f"; fi
		done
		env=()
		for v in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
			if [ -n "${!v:-}" ]; then env+=("$v=${!v}"); fi
		done
		exec chroot "$m" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin HOME=/root LC_ALL=C.UTF-8 \
			DEBIAN_FRONTEND=noninteractive "${env[@]}" "$@"' bash "$1" "$CACHE/machine-archives" "${@:2}"
}

apt_in() {
	local m=$1
	shift
	in_machine "$m" apt-get -qy -o APT::Keep-Downloaded-Packages=true -o Acquire::Retries=3 "$@"
}

# base_machine KERNEL VERSION: print the folder of the machine as installed; made once.
make_base() {
	local dir=$1 kver=$2 version=$3 m
	m=$(mirror)
	[ -n "$m" ] || m=$(awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /^[a-z]+:/ && !n++) print $i }' "$ROOT/etc/apt/sources.list")
	rm -rf --one-file-system "$dir.tmp"
	unshare --mount --propagation private -- mmdebstrap --variant=minbase --architectures="$DEB_ARCH" \
		--include="$(machine_packages)" --aptopt='Acquire::Retries "3"' "$SUITE" "$dir.tmp" \
		"deb $m $SUITE main" "deb $m $KERNEL_SUITE main"
	: >>"$dir.tmp/etc/resolv.conf"
	: >>"$dir.tmp/etc/hosts"
	apt_in "$dir.tmp" update
	# linux-source names the version: the metapackage of backports is the newest kernel's.
	apt_in "$dir.tmp" install --no-install-recommends -t "$KERNEL_SUITE" "linux-image-$kver" "linux-headers-$kver" \
		"linux-source=$version" "linux-source-$(echo "$kver" | cut -d. -f1,2)=$version"
	mv -T "$dir.tmp" "$dir"
}

base_of() {
	echo "$CACHE/machine-$(echo "1 $SUITE $1 $2 $(machine_packages)" | short_hash)"
}

# disk: out/deb/machine.img, a file system with the machine in it, but for what only builds need.  The guest's half of the
# test is in its /usr/local/sbin, not in the machine's.
disk() {
	"$TOP/virtme/enter.sh" -b "$MACHINE:/mnt" -- bash -euc '
		for d in /mnt/usr/lib/llvm-* /mnt/usr/lib/rustlib /mnt/usr/lib/gcc /mnt/usr/src /mnt/var/cache /mnt/usr/share/doc /mnt/usr/include; do
			[ ! -d "$d" ] || mount -t tmpfs tmpfs "$d"
		done
		mount -t tmpfs tmpfs /mnt/usr/local/sbin
		cp selftests/deb/boot.sh /mnt/usr/local/sbin/
		rm -f out/deb/machine.img
		mke2fs -q -t ext4 -L lowtail -d /mnt out/deb/machine.img "$(($(du -sxm /mnt | cut -f1) * 5 / 4 + 300))m"'
}

# kernel_arguments SETTING KERNEL: systemd runs boot.sh as the last thing of the boot, then powers off.
kernel_arguments() {
	echo "root=LABEL=lowtail rw console=ttyS0 quiet panic=-1 oops=panic lowtail=$1,$2 systemd.run=/usr/local/sbin/boot.sh" \
		"systemd.run_success_action=poweroff systemd.run_failure_action=poweroff"
}

# qemu SETTING QEMU-ARGUMENTS…: boot out/deb/machine.img.  selftests/deb/boot.sh puts its results into $SHARE/results.
qemu() {
	local setting=$1 accel
	shift
	mkdir -p "$SHARE"
	rm -f "$SHARE/results"
	# KVM was probed for the kernel of the set-up, which is as new as any here.
	if [ "$("$TOP/virtme/kvm.sh")" = kvm ]; then accel=(-accel kvm -cpu host); else accel=(-accel tcg -cpu max); fi
	timeout -k 5 "${LOWTAIL_LIMIT:-600}" "$TOP/virtme/enter.sh" -p -b "$MACHINE:/mnt" -- env TMPDIR=/lowtail/out/deb qemu-system-x86_64 "${accel[@]}" \
		-smp 2 -m 1G -nodefaults -no-reboot -display none -serial stdio \
		-virtfs "local,path=/lowtail/out/deb/share,mount_tag=lowtail,security_model=none" \
		-drive "file=/lowtail/out/deb/machine.img,format=raw,if=virtio,snapshot=on" \
		"$@" </dev/null >"$TOP/out/deb/$setting.console" 2>&1 || :
}

# boot SETTING KERNEL [KERNEL-ARGUMENT…]
boot() {
	local setting=$1 kver=$2
	shift 2
	qemu "$setting" -kernel "/mnt/boot/vmlinuz-$kver" -initrd "/mnt/boot/initrd.img-$kver" \
		-append "$(kernel_arguments "$setting" "$kver") $*"
}
