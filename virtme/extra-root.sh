# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Roots of their own for what few people run: the standard root does not grow by it.  Sourced, after lib.sh and mirror.sh.

extra_packages() { sed 's/#.*//' "$TOP/virtme/packages-$1" | tr -s ' \n' '\n' | sed '/^$/d' | sort -u; }

# extra_root NAME: the path of the root with the packages of virtme/packages-NAME, whether it is there or not.
extra_root() {
	echo "$CACHE/$1-$({
		echo "format 1 $SUITE $DEB_ARCH"
		extra_packages "$1"
	} | short_hash)"
}

bootstrap_extra() {
	local name=$1 root=$2 tmp=$CACHE/tmp-$1 mirror=() m
	m=$(mirror)
	[ -z "$m" ] || mirror=("$m")
	rm -rf --one-file-system "$tmp"
	# The folder of manual pages is there without them: Java's package sets links into it.
	# shellcheck disable=SC2016 # expanded by mmdebstrap's shell
	unshare --mount --propagation private -- mmdebstrap --variant=minbase --architectures="$DEB_ARCH" \
		--include="$(extra_packages "$name" | paste -sd,)" \
		--aptopt='Apt::Install-Recommends "false"' \
		--aptopt='Acquire::Retries "3"' \
		--aptopt="Acquire::Check-Valid-Until \"$(valid_until)\"" \
		--aptopt='Acquire::http::Timeout "30"' \
		--setup-hook='mkdir -p "$1/usr/share/man/man1"' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		"$SUITE" "$tmp" "${mirror[@]}"
	# What enter.sh mounts on.
	mkdir -p "$tmp"/{lowtail,opt/cargo,usr/src/lowtail/src}
	sync -f "$tmp/usr"
	mv -T "$tmp" "$root"
}

# make_extra_root NAME: makes it where it is not there.
make_extra_root() {
	local root
	root=$(extra_root "$1")
	[ ! -d "$root" ] || return 0
	need_space
	host_packages
	logged "$1" "Debian $SUITE root with $(extra_packages "$1" | paste -sd' ')" \
		"the root with $(extra_packages "$1" | paste -sd' ') could not be made from $(mirror_name)" \
		"$(mirror_remedy)" bootstrap_extra "$1" "$root"
}
