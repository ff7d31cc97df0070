#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# image.sh KIND: make the two files that a virtual-time guest boots from, and
# print their folder: `vmlinux`, the stock kernel without its compressed wrapper,
# and `KIND.cpio`, an initramfs with everything that a scenario may run.
#
# Touches: $IMAGE_DIR only. Runs inside the Debian root (virtme/enter.sh).
#
#   KIND       base   network tools, netperf, rpctail, our modules
#              pg     base, plus PostgreSQL with a cluster made beforehand, a
#                     forwarder of our own and pasta
#              web    base, plus Tomcat and nginx: out/vtime/web-layer.cpio, which virtme/web.sh makes
#   KVER       release of the stock kernel under /usr/lib/modules
#   IMAGE_DIR  where the files go (default out/vtime/image-$KVER)
#   MOD_DIR    where kbuild left our modules (default out/kbuild/$KVER); those of
#              selftests/faults/ are taken from the folder beside it, $MOD_DIR-faults
#   BIN_DIR    where cargo left rpctail and splicefwd (default out/cargo/release)
#
# Why like this: one guest instruction is one virtual nanosecond and several host
# nanoseconds, so what the guest need not do is done here. The kernel is unpacked
# (QEMU enters the ELF file by its PVH note; the code is Debian's to the byte),
# the modules are uncompressed, the cpio is not compressed, the applets' links and
# the database exist already.

set -euo pipefail
umask 022

kind=${1:-base}
case $kind in
base | pg | web) ;;
*)
	echo "image.sh: unknown kind '$kind' (base, pg, web)" >&2
	exit 2
	;;
esac

here=$(cd "$(dirname "$0")/.." && pwd)
: "${KVER:?image.sh: KVER, the kernel release, is not set}"
modules=/usr/lib/modules/$KVER
dir=${IMAGE_DIR:-$here/out/vtime/image-$KVER}
programs=${BIN_DIR:-${CARGO_TARGET_DIR:-$here/out/cargo}/release}
mods=${MOD_DIR:-$here/out/kbuild/$KVER}
tree=$dir/tree-$kind

if [ ! -e "$modules/vmlinuz" ]; then
	echo "image.sh: no kernel $KVER: $modules/vmlinuz is missing" >&2
	exit 1
fi
layer=
if [ "$kind" = web ]; then
	layer=$here/out/vtime/web-layer.cpio
	[ -e "$layer" ] || {
		echo "image.sh: $layer is missing; \`make apps\` makes it, and so does virtme/web.sh" >&2
		exit 1
	}
fi
mkdir -p "$dir"

# The modules that scenarios load by name; what they depend on follows.
kernel_modules=(
	e1000e veth tcp_dctcp tcp_diag inet_diag
	tun sch_netem sch_tbf sch_red sch_fq sch_htb sch_ingress
	act_gact act_bpf cls_u32 cls_bpf cls_matchall ifb
	nft_limit nft_numgen nf_tables
)

# bzImage's header says where the compressed kernel stands (boot protocol 2.08:
# setup_sects at 0x1f1, payload_offset at 0x248, payload_length at 0x24c).
unpack_kernel() {
	local image=$1 sects offset length
	sects=$(od -An -tu1 -j$((0x1f1)) -N1 "$image")
	offset=$(od -An -tu4 -j$((0x248)) -N4 "$image")
	length=$(od -An -tu4 -j$((0x24c)) -N4 "$image")
	tail -c +$(((sects + 1) * 512 + offset + 1)) "$image" >"$dir/payload"
	# The payload ends with the unpacked size, four bytes of no compressor.
	truncate -s $((length - 4)) "$dir/payload"
	case $(od -An -tx1 -N4 "$dir/payload" | tr -d ' ') in
	28b52ffd) zstd -dcq "$dir/payload" ;;
	fd377a58) xz -dc --single-stream "$dir/payload" ;;
	1f8b*) gzip -dc "$dir/payload" ;;
	*)
		echo "image.sh: $image is packed in a way this script does not know" >&2
		return 1
		;;
	esac >"$dir/vmlinux.new"
	rm "$dir/payload"
	mv "$dir/vmlinux.new" "$dir/vmlinux"
}

# A program and the libraries it is linked with, at the paths they have here.
add_program() {
	local program path lib
	for program; do
		path=$(command -v "$program") || {
			echo "image.sh: '$program' is not in this root" >&2
			return 1
		}
		mkdir -p "$tree$(dirname "$path")"
		# Not through a link that stands there: it may point out of the tree.
		cp -L --remove-destination "$path" "$tree$path"
		add_libraries "$path"
	done
}

add_libraries() {
	local lib
	{ ldd "$@" 2>/dev/null || true; } |
		sed -n 's/.*=> \(\/[^ ]*\) (.*/\1/p; s/^[[:space:]]*\(\/[^ ]*ld-[^ ]*\) (.*/\1/p' |
		sort -u |
		while read -r lib; do
			[ -e "$tree$lib" ] && continue
			mkdir -p "$tree$(dirname "$lib")"
			cp -L --remove-destination "$lib" "$tree$lib"
		done
}

add_kernel_modules() {
	local name file to
	to=$tree/usr/lib/modules/$KVER
	mkdir -p "$to"
	cp "$modules"/modules.{order,builtin,builtin.modinfo} "$to/"
	for name in "${kernel_modules[@]}"; do
		# modprobe's own list of dependencies, in the order of insmod.
		modprobe -d "$dir/depmod" -S "$KVER" --show-depends "$name" 2>/dev/null |
			sed -n 's/^insmod \([^ ]*\).*/\1/p'
	done | sort -u | while read -r file; do
		file=$modules/${file#*/"$KVER"/}
		name=$to/${file#"$modules"/}
		mkdir -p "$(dirname "$name")"
		case $file in
		*.xz) xz -dc "$file" >"${name%.xz}" ;;
		*.zst) zstd -dcq "$file" >"${name%.zst}" ;;
		*) cp "$file" "$name" ;;
		esac
	done
	for file in "$mods"/{tcp_dctcp_floor,autocork_policy}.ko "$mods"-faults/*.ko; do
		[ -e "$file" ] || continue
		mkdir -p "$to/updates"
		strip --strip-debug -o "$to/updates/$(basename "$file")" "$file"
	done
	depmod -b "$tree" "$KVER"
}

# depmod's result for the root's own modules, kept beside the images: packages'
# triggers may not have run in a root made without them.
index_kernel_modules() {
	[ "$dir/depmod/lib/modules/$KVER/modules.dep" -nt "$modules/modules.order" ] && return
	mkdir -p "$dir/depmod/lib/modules"
	rm -rf "$dir/depmod/lib/modules/$KVER"
	cp -rs "$modules" "$dir/depmod/lib/modules/$KVER"
	depmod -b "$dir/depmod" "$KVER"
}

add_base() {
	local link applet
	for link in bin sbin lib lib64; do
		mkdir -p "$tree/usr/$link"
		ln -s "usr/$link" "$tree/$link"
	done
	mkdir -p "$tree"/{dev,proc,sys,tmp,run,root,etc,var/tmp}
	echo 'root:x:0:0:root:/root:/bin/sh' >"$tree/etc/passwd"
	echo 'root:x:0:' >"$tree/etc/group"
	echo '127.0.0.1 localhost' >"$tree/etc/hosts"
	add_program busybox bash ip tc ss nstat ethtool netperf netserver kmod
	ln -sf bash "$tree/usr/bin/sh"
	for applet in $(busybox --list); do
		command -v "$tree/usr/bin/$applet" "$tree/usr/sbin/$applet" >/dev/null ||
			ln -s busybox "$tree/usr/bin/$applet"
	done
	for applet in modprobe insmod rmmod lsmod modinfo; do
		ln -sf ../bin/kmod "$tree/usr/sbin/$applet"
		rm -f "$tree/usr/bin/$applet"
	done

	for link in rpctail splicefwd pgbatch; do
		[ -e "$programs/$link" ] || continue
		cp "$programs/$link" "$tree/usr/bin/$link"
		add_libraries "$programs/$link"
	done
	gcc -O2 -Wall -Werror -o "$tree/usr/bin/mark" "$here/virtme/mark.c"
	cp -r "$here/selftests/scenarios" "$tree/scenarios"
	ln -s scenarios/init "$tree/init"
	chmod 755 "$tree/scenarios/init"
}

index_kernel_modules
[ "$dir/vmlinux" -nt "$modules/vmlinuz" ] || unpack_kernel "$modules/vmlinuz"
rm -rf "$tree"
mkdir -p "$tree"
add_base
add_kernel_modules
if [ "$kind" = pg ]; then
	# shellcheck source=virtme/image-pg.sh
	. "$here/virtme/image-pg.sh"
	add_postgres
fi
# The same inputs give the same bytes: even a file's date would shift the boot by
# some instructions, and with it all that follows.
find "$tree" -exec touch -h -d @0 {} +
(cd "$tree" && find . -print0 | LC_ALL=C sort -z | cpio -0 -o -H newc --quiet --reproducible) >"$dir/$kind.cpio.new"
# The kernel unpacks one archive after the other.
[ -z "$layer" ] || cat "$layer" >>"$dir/$kind.cpio.new"
mv "$dir/$kind.cpio.new" "$dir/$kind.cpio"
rm -rf "$tree"
echo "$dir"
