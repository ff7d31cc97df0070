#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Make the Debian root (trixie, or with LOWTAIL_SUITE=sid that): build environment, home of QEMU and virtme-ng, and the guest's file system.
#
# mmdebstrap builds it from the list in virtme/packages; virtme-ng comes from PyPI, because the release in
# trixie is older than Debian's move of the kernel to /usr/lib/modules.  Needs the network once.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
. "$TOP/virtme/mirror.sh"

bootstrap() {
	local mirror=() m
	m=$(mirror)
	[ -z "$m" ] || mirror=("$m")
	# Documentation and translations are a third of the files and nobody reads them here; of rust-src the kernel
	# build wants library/ alone.  A guest's root needs no recommends.
	# Its mounts of /proc, /sys and /dev are in a mount namespace of its own, and go with it however it ends.
	unshare --mount --propagation private -- mmdebstrap --variant=minbase --architectures="$DEB_ARCH" --components=main,contrib,non-free \
		--include="$(package_list | paste -sd,)" \
		--aptopt='Apt::Install-Recommends "false"' \
		--aptopt='Acquire::Retries "3"' \
		--aptopt="Acquire::Check-Valid-Until \"$(valid_until)\"" \
		--aptopt='Acquire::http::Timeout "30"' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/info/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		--dpkgopt='path-exclude=/usr/src/rustc-*/*' \
		--dpkgopt='path-include=/usr/src/rustc-*/library/*' \
		"$SUITE" "$1" "${mirror[@]}"
}

install_vng() {
	"$TOP/virtme/enter.sh" -w -r "$1" -- sh -ec '
		cd /
		python3 -m venv /opt/vng
		/opt/vng/bin/pip install --no-cache-dir --no-input --disable-pip-version-check "virtme-ng>=1.41"
		vng --version'
}

need_root
lock_setup
root_ready && exit 0
need_space
host_packages

tmp=$CACHE/tmp-root
# A root that was being made without such a namespace and was killed: what it mounted is still there.
awk -v below="$tmp/" 'index($5, below) == 1 { print $5 }' /proc/self/mountinfo | sort -r | while read -r mounted; do
	umount "$mounted"
done
rm -rf --one-file-system "$tmp"
logged root "Debian $SUITE root ($(package_list | wc -l) packages and what they need)" \
	"the Debian root could not be made from $(mirror_name)" "$(mirror_remedy)" \
	bootstrap "$tmp"
mkdir -p "$tmp"/{lowtail,opt/cargo,usr/src/lowtail/src,usr/lib/lowtail}
: >>"$tmp/etc/resolv.conf"
: >>"$tmp/etc/hosts"
logged vng "virtme-ng in an environment of its own" \
	"virtme-ng could not be installed from PyPI" \
	"check that pip reaches its index (http_proxy, https_proxy, PIP_INDEX_URL are passed on), then start again" \
	install_vng "$tmp"
: >"$tmp/usr/lib/lowtail/complete"
sync -f "$tmp/usr/lib/lowtail/complete"
mv -T "$tmp" "$ROOT"
