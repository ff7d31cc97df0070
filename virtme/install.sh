#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Put the built modules onto a machine, or take them away:  virtme/install.sh install|uninstall KDIR [DESTDIR]
#
# The target kernel decides, not the running one.  Nothing is loaded and no setting of the machine is changed: the
# modprobe.d file holds the parameters as comments, and so does modules-load.d's, because dctcp_floor loads by its name when
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
	install -d "$moddir/updates" "$dest/etc/modprobe.d" "$dest/etc/modules-load.d"
	for n in "${names[@]}"; do
		install -m 644 "$TOP/out/kbuild/$release/$n.ko" "$moddir/updates/"
	done
	# The owner's changes to the snippets stay.
	[ -e "$dest/etc/modprobe.d/lowtail.conf" ] || cat >"$dest/etc/modprobe.d/lowtail.conf" <<-'END'
		# lowtail: parameters at load time.  What can be set later is under /sys/module/tcp_dctcp_floor/parameters/
		# and in net.ipv4.tcp_autocork_policy.
		#options tcp_dctcp_floor dctcp_shift_g=4 dctcp_alpha_on_init=1024 rto_floor=Y
	END
	[ -e "$dest/etc/modules-load.d/lowtail.conf" ] || cat >"$dest/etc/modules-load.d/lowtail.conf" <<-'END'
		# lowtail: loaded at boot when the # goes.  tcp_dctcp_floor loads by itself when it is chosen
		# (net.ipv4.tcp_congestion_control=dctcp_floor); without CAP_NET_ADMIN it must be loaded before.
		#tcp_dctcp_floor
		#autocork_policy
	END
	index
	say "installed for $release in $moddir/updates; nothing is loaded: modprobe autocork_policy, sysctl net.ipv4.tcp_congestion_control=dctcp_floor"
	;;
uninstall)
	for n in "${names[@]}"; do rm -f "$moddir/updates/$n.ko"; done
	rm -f "$dest/etc/modprobe.d/lowtail.conf" "$dest/etc/modules-load.d/lowtail.conf"
	index
	say "removed from $moddir; what is loaded stays loaded until rmmod or a reboot"
	;;
*) die "usage: install.sh install|uninstall KDIR [DESTDIR]" ;;
esac
