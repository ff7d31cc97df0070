#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Bring the stock Debian kernel: the newest linux-image of trixie-backports, or of sid, that has CONFIG_RUST=y, or KVER=.
#
#   kernel.sh choose   decide on the version: a wrong one, or a mirror that does not answer, is told within seconds
#   kernel.sh fetch    download its packages, unpack the source of the very same version
#   kernel.sh install  put it into the root
#
# Apart, because fetch needs no root and can run while mmdebstrap works.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
. "$TOP/virtme/mirror.sh"

# Readers of pipes here read to the end: with pipefail, one that leaves early makes its writer's SIGPIPE a failure.

# Every generic kernel that the archive has, newest first.
available() {
	our_apt apt-cache pkgnames linux-image- |
		sed -n "s/^linux-image-\([0-9][^-]*+deb[0-9]*-$KERNEL_ARCH\)$/\1/p" | sort -Vr
}

# The full release name of KVER=, which may be short (7.2 or 7.2.12).
full_name() {
	local v
	v=$(available | awk -v want="$1" '$0 == want || index($0, want ".") == 1 || index($0, want "+") == 1 { if (!n++) print }')
	[ -n "$v" ] || die "kernel '$1' is not in $KERNEL_SUITE (any more)" \
		"choose one that is: $(available | awk -F. '$1 >= 7' | sed -n 1,12p | paste -sd' ')"
	echo "$v"
}

version_of() {
	our_apt apt-cache show "linux-headers-$1" | awk '$1 == "Version:" && !n++ { print $2 }'
}

has() {
	our_apt apt-cache show "$1" 2>/dev/null | grep '^Version:' >/dev/null
}

# Newer Debian kernels are split into image, binary, modules and base; take those that exist.
download() {
	local kver=$1 ver p series want=()
	ver=$(version_of "$kver")
	for p in image binary modules base headers; do
		if has "linux-$p-$kver"; then want+=("linux-$p-$kver"); fi
	done
	series=$(echo "$kver" | cut -d. -f1,2)
	rm -rf "$CACHE/debs/tmp"
	mkdir -p "$CACHE/debs/tmp"
	cd "$CACHE/debs/tmp"
	if [ ! -e "$CACHE/src/linux-$ver" ]; then want+=("linux-source-$series=$ver"); fi
	our_apt apt-get download "${want[@]}"
	echo "$ver" >version
	cd ..
	rm -rf "$kver"
	mv -T tmp "$kver"
}

# Left out: the bulk of files that neither `modules_prepare` nor a reader of the network code opens.  Kconfig and
# Makefiles stay, wherever they are.
unpack_source() {
	local deb
	for deb in "$CACHE/debs/$1"/linux-source-*.deb; do break; done
	rm -rf "$CACHE/src/tmp"
	mkdir -p "$CACHE/src/tmp"
	dpkg-deb --fsys-tarfile "$deb" | tar -xOf - --wildcards './usr/src/linux-source-*.tar.xz' | xz -dc -T2 |
		tar -xf - -C "$CACHE/src/tmp" --strip-components=1 \
			--wildcards --wildcards-match-slash \
			--exclude-from="$TOP/dkms/source-excludes"
	mv -T "$CACHE/src/tmp" "$2"
	rm -f "$deb"
}

downloaded() {
	local d=$CACHE/debs/$1
	[ -e "$d/version" ] || return 1
	[ -e "$CACHE/src/linux-$(<"$d/version")" ] || compgen -G "$d/linux-source-*.deb" >/dev/null
}

# What is there already needs no index, hence no network.
choose() {
	local kver
	kver=$(kernel_stock)
	[ -z "${UPDATE:-}" ] || [ -n "${KVER:-}" ] || kver=
	if ! kernel_ready "$kver" && ! downloaded "${kver:-none}"; then
		logged index "package index of $KERNEL_SUITE" \
			"the index of $KERNEL_SUITE could not be had from $(mirror_name)" "$(mirror_remedy)" \
			our_apt_update
		if [ -n "$kver" ]; then
			kver=$(full_name "$kver")
		else
			kver=$(available | sed -n 1p)
			[ -n "$kver" ] || die "$(mirror_name) lists no linux-image for $KERNEL_ARCH in $KERNEL_SUITE" "$(mirror_remedy)"
		fi
	fi
	[ -z "${KVER:-}" ] || [ "$KVER" = "$kver" ] || echo "$kver" >"$CHOICE-$KVER"
	echo "$kver" >"$CHOICE.next"
}

fetch() {
	local kver ver
	kver=$(<"$CHOICE.next")
	if kernel_ready "$kver"; then return; fi
	if ! downloaded "$kver"; then
		logged download "packages and source of the kernel $kver" \
			"the packages of $kver could not be downloaded from $(mirror_name)" "$(mirror_remedy)" \
			download "$kver"
	fi
	ver=$(<"$CACHE/debs/$kver/version")
	if [ ! -e "$CACHE/src/linux-$ver" ]; then
		logged source "unpacking the source of Linux $ver" "the source of Linux $ver could not be unpacked" \
			"rm -r $CACHE/debs/$kver, look at the free space, then start again" \
			unpack_source "$kver" "$CACHE/src/linux-$ver"
	fi
}

# Unpack beside the final places, for both packagings: older ones have image and config in /boot, modules in /lib.
unpack_packages() {
	local kver=$1 t=$2 deb f
	rm -rf "$t"
	mkdir -p "$t"
	for deb in "$CACHE/debs/$kver"/*.deb; do
		case $deb in */linux-source-*) continue ;; esac
		dpkg-deb -x "$deb" "$t"
	done
	if [ -d "$t/lib/modules" ]; then
		mkdir -p "$t/usr/lib"
		mv "$t/lib/modules" "$t/usr/lib/modules"
	fi
	for f in vmlinuz config System.map; do
		[ ! -e "$t/boot/$f-$kver" ] || mv "$t/boot/$f-$kver" "$t/usr/lib/modules/$kver/$f"
	done
}

# The stamp is written last; until then the kernel does not count as there.
move_into_root() {
	local kver=$1 ver=$2 t=$3
	rm -rf "${ROOT:?}/usr/lib/modules/$kver" "$ROOT/usr/src/linux-headers-$kver"
	mkdir -p "$ROOT/usr/lib/modules"
	mv "$t/usr/src/linux-headers-$kver" "$ROOT/usr/src/"
	mv "$t/usr/lib/modules/$kver" "$ROOT/usr/lib/modules/"
	# Its `build` link leads to headers without Rust metadata; ours leads to the tree that has it.
	ln -sfn "$(kdir_of "$kver")" "$ROOT/usr/lib/modules/$kver/build"
	chroot "$ROOT" /sbin/depmod "$kver"
	rm -rf "$t"
	echo "linux-$ver" >"$ROOT/usr/lib/lowtail/kernel-$kver.tmp"
	sync -f "$ROOT/usr/lib/lowtail"
	mv "$ROOT/usr/lib/lowtail/kernel-$kver.tmp" "$ROOT/usr/lib/lowtail/kernel-$kver"
}

install_kernel() {
	local kver t=$ROOT/usr/src/lowtail/tmp-kernel what
	kver=$(<"$CHOICE.next")
	if ! kernel_ready "$kver"; then
		what="the kernel $kver could not be unpacked into the root"
		logged kernel "unpacking the stock kernel $kver" "$what" \
			"rm -r $CACHE/debs/$kver, look at the free space, then start again" \
			unpack_packages "$kver" "$t"
		grep -qx CONFIG_RUST=y "$t/usr/lib/modules/$kver/config" ||
			die "the kernel $kver has no CONFIG_RUST=y" "choose Linux 7.0 or newer, such as KVER=7.3"
		logged kernel "stock kernel $kver into the root" "$what" "look at the free space, then start again" \
			move_into_root "$kver" "$(cat "$CACHE/debs/$kver/version")" "$t"
	fi
	# KVER= is for this call; without it the choice is remembered.
	[ -n "${KVER:-}" ] || echo "$kver" >"$CHOICE"
}

need_root
lock_setup
case ${1:-} in
choose) choose ;;
fetch) fetch ;;
install) install_kernel ;;
*) die "usage: kernel.sh choose|fetch|install" ;;
esac
