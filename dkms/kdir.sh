#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Print a KDIR with Rust's metadata for an installed kernel of Debian's:  dkms/kdir.sh KERNEL HEADERS
#
# Debian's linux-headers carry no Rust metadata.  It is rebuilt from linux-source of the very same version, once a kernel,
# and kept in /var/cache/lowtail-dkms/KERNEL: rust/ and the target's description are built, all else there is a link to the
# headers.  Headers that have the metadata (a kernel of your own) are taken as they are.
#
# DKMS puts all that is said into make.log.  What stops the build is one line, and goes to the terminal too.

set -euo pipefail

kver=$1 headers=$(readlink -m "$2")
here=$(cd "$(dirname "$0")/.." && pwd -P)
cache=/var/cache/lowtail-dkms
kdir=$cache/$kver

die() {
	echo "lowtail-dkms: no build for $kver: $1" >&2
	{ printf '\nlowtail-dkms: no build for %s: %s\n' "$kver" "$1" >/dev/tty; } 2>/dev/null || :
	exit 1
}

# Progress goes where DKMS keeps its log; standard output is the answer.
exec 3>&1 1>&2

if [ -e "$headers/rust/libkernel.rmeta" ]; then
	echo "$headers" >&3
	exit 0
fi
[ -e "$headers/include/config/auto.conf" ] || die "its headers are missing: apt-get install linux-headers-$kver"

# Value of a string option, without its quotes.
option() { sed -n "s/^$1=//p" "$headers/include/config/auto.conf" | tr -d '"'; }

[ "$(option CONFIG_RUST)" = y ] || die "it was built without Rust (CONFIG_RUST); Debian's are built with it since Linux 7.0"

# 7.3 of 7.3.4+deb13-amd64.
series=$(echo "$kver" | grep -oE '^[0-9]+\.[0-9]+')
source=/usr/src/linux-source-$series.tar.xz
cc=$(option CONFIG_CC_VERSION_TEXT | cut -d' ' -f1)
common=$(sed -n 's|^include \(.*\)/Makefile$|\1|p' "$headers/Makefile")

missing=()
need() { [ -e "$1" ] || missing+=("$2"); }
need_commands() {
	while read -r command package; do
		command -v "$command" >/dev/null || missing+=("$package")
	done
}
need_commands <<END
rustc rustc
bindgen bindgen
$cc ${cc##*-linux-gnu-}
make make
pahole pahole
END
[ ${#missing[@]} = 0 ] || die "apt-get install ${missing[*]}"

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9

# Kernels that are gone need nothing any more.
for old in "$cache"/*/; do
	old=$(basename "$old")
	[ "$old" = '*' ] || [ -e "/lib/modules/$old/build" ] || rm -rf "${cache:?}/$old"
done

# Other headers or another toolchain make other metadata.
stamp=$({
	cat "$headers/.config" "$headers/Module.symvers"
	rustc --version
	bindgen --version
} | sha256sum | cut -d' ' -f1)
if [ "$(cat "$kdir/made-from" 2>/dev/null)" = "$stamp" ]; then
	echo "$kdir" >&3
	exit 0
fi

need_commands <<END
flex flex
bison bison
bc bc
perl perl
xz xz-utils
END
need "$(rustc --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library/core/src/lib.rs" rust-src
need "$source" "linux-source-$series"
need "${common:-/nonexistent}/Makefile" "linux-headers-$kver"
[ ${#missing[@]} = 0 ] || die "apt-get install ${missing[*]}"

# The source must be the kernel's own, to Debian's revision.
version() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null || :; }
want=$(version "linux-headers-$kver") found=$(version "linux-source-$series")
[ -z "$want" ] || [ "$want" = "$found" ] ||
	die "linux-source-$series is $found, the kernel is $want: apt-get install linux-source-$series=$want"
fits=$(LOWTAIL_DKMS=1 CC=$cc "$here/virtme/preflight.sh" -t "$headers" "$kver" 2>&1) || die "${fits//$'\n'/; }"

echo "Rust metadata for $kver, from $source"
work=$(mktemp -d "$cache/tmp.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/src" "$work/obj" "$work/kdir"
xz -dc -T0 "$source" | tar -xf - -C "$work/src" --strip-components=1 \
	--wildcards --wildcards-match-slash --exclude-from="$here/dkms/source-excludes" ||
	die "$source could not be unpacked into $cache (2 GB are needed): $(df -Ph "$cache" | awk 'NR == 2 { print $4 }') are free"
# linux-kbuild has these ready-made.  Building them takes libelf-dev and libssl-dev, and where the headers came from backports,
# with its pahole and libelf, trixie's libelf-dev cannot be installed.
kbuild=$(readlink -f "$headers/scripts")/..
arch=$(sed -n 's/^override ARCH = //p' "$headers/.kernelvariables")
for tool in objtool bpf/resolve_btfids; do
	name=${tool##*/}
	ready=$(readlink -e "$kbuild/tools/$tool/$name.real-$arch" || readlink -e "$kbuild/tools/$tool/$name") || continue
	printf 'include %s/scripts/Makefile.include\nall $(OUTPUT)%s: FORCE ; cp %s $(OUTPUT)%s\nFORCE:\n' \
		"$work/src/tools" "$name" "$ready" "$name" >"$work/src/tools/$tool/Makefile"
done
sed -i '/sign-file$/d' "$work/src/scripts/Makefile"
"$here/dkms/prepare.sh" "$work/src" "$work/obj" "$kver" "$headers/.config" "$cc" ||
	die "the kernel's Rust part did not build, see make.log"

cd "$work/kdir"
ln -s "$headers"/* "$headers"/.[!.]* .
rm Makefile scripts
printf 'KBUILD_OUTPUT=%s\ninclude %s/Makefile\n' "$kdir" "$common" >Makefile
mkdir -p rust/kernel scripts
ln -s "$headers"/scripts/* scripts/
[ ! -e "$work/obj/scripts/target.json" ] || cp "$work/obj/scripts/target.json" scripts/
cp "$work"/obj/rust/*.{rmeta,so} "$work"/obj/rust/exports_*_generated.h "$work/src/rust/Makefile" rust/
cp "$work"/obj/rust/kernel/*.rs rust/kernel/
echo "$stamp" >made-from
rm -rf "$kdir"
mv -T "$work/kdir" "$kdir"
echo "$kdir" >&3
