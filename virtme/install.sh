#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Put the built modules onto a machine, or take them away:  virtme/install.sh install|uninstall KDIR [DESTDIR]
#
# The target kernel decides, not the running one.  Nothing is loaded and no setting of the machine is changed: the
# files of modprobe.d, modules-load.d and sysctl.d hold comments only (conf/), because dctcp_floor loads by its name when
# somebody chooses it and DCTCP belongs on data-centre paths only.  Both ways may be run twice.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

what=${1:-} kdir=${2:-} dest=${3:-}
names=(tcp_dctcp_floor autocork_policy)
[ -n "$kdir" ] || kdir=/lib/modules/$(uname -r)/build
release=$(cat "$kdir/include/config/kernel.release" 2>/dev/null) ||
	die "$kdir is no kernel build tree" "make $what KDIR=/lib/modules/KERNEL/build"
moddir=$dest/lib/modules/$release
[ -n "$dest" ] || [ "$(id -u)" = 0 ] || die "installing needs root" "sudo make $what KDIR=$kdir"

# A packager's DESTDIR holds no kernel: there depmod is the package's business.
index() {
	[ -d "$moddir/kernel" ] || return 0
	command -v depmod >/dev/null || PATH=$PATH:/usr/sbin:/sbin
	command -v depmod >/dev/null || die "depmod is missing, so modprobe would not find the modules" "apt-get install kmod"
	depmod ${dest:+-b "$dest"} "$release"
}

case $what in
install)
	for n in "${names[@]}"; do
		ko=$TOP/out/kbuild/$release/$n.ko
		[ -e "$ko" ] || die "$ko is not built" "make modules KDIR=$kdir"
		magic=$(LC_ALL=C tr '\0' '\n' <"$ko" | LC_ALL=C sed -n 's/^vermagic=//p')
		[ "${magic%% *}" = "$release" ] || die "$ko is for ${magic%% *}, not for $release" "make clean && make modules KDIR=$kdir"
	done
	install -d "$moddir/updates" "$dest"/etc/{modprobe,modules-load,sysctl}.d
	for n in "${names[@]}"; do
		install -m 644 "$TOP/out/kbuild/$release/$n.ko" "$moddir/updates/"
	done
	# The owner's changes to the snippets stay.
	for c in modprobe modules-load sysctl; do
		[ -e "$dest/etc/$c.d/lowtail.conf" ] || install -m 644 "$TOP/conf/$c.conf" "$dest/etc/$c.d/lowtail.conf"
	done
	index
	say "installed for $release in $moddir/updates; nothing is loaded: modprobe autocork_policy, sysctl net.ipv4.tcp_congestion_control=dctcp_floor"
	;;
uninstall)
	for n in "${names[@]}"; do rm -f "$moddir/updates/$n.ko"; done
	rmdir "$moddir/updates" 2>/dev/null || :
	for c in modprobe modules-load sysctl; do
		f=$dest/etc/$c.d/lowtail.conf
		if cmp -s "$TOP/conf/$c.conf" "$f"; then
			rm "$f"
		elif [ -e "$f" ]; then
			say "$f was changed and stays: remove it by hand"
		fi
	done
	index
	say "removed from $moddir; what is loaded stays loaded until rmmod or a reboot"
	;;
*) die "usage: install.sh install|uninstall KDIR [DESTDIR]" ;;
esac
