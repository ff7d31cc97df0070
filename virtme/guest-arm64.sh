#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Make the initramfs of arm64 guests, and print its name:  virtme/guest-arm64.sh   (kept in the cache)
#
# Debian's arm64 packages of virtme/packages-arm64-guest, unpacked and not configured: no arm64 program has to run
# here.  The kernel's modules and the checkout come over 9p, for which it brings the stock modules.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
. "$TOP/virtme/mirror.sh"

guest_packages() { sed 's/#.*//' "$TOP/virtme/packages-arm64-guest" | tr -s ' \n' '\n' | sed '/^$/d' | sort -u; }

# What mounts the shares, with what these need, as modprobe orders it.
transport=(virtio_pci 9pnet_virtio 9p)

write_init() {
	cat <<'INIT'
#!/bin/bash
# The arm64 guest's first program: the shares, then virtme/guest.sh as in any other guest, then off.
export PATH=/usr/sbin:/usr/bin HOME=/root LANG=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mkdir -p /dev/pts /dev/shm /run/netns
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tracefs trace /sys/kernel/tracing
for module in /boot-modules/*.ko; do insmod "$module"; done
kver=$(uname -r)
mkdir -p /lowtail "/usr/lib/modules/$kver"
share=trans=virtio,version=9p2000.L,msize=262144
mount -t 9p -o "$share,cache=loose,ro" modules "/usr/lib/modules/$kver"
mount -t 9p -o "$share,ro" lowtail /lowtail
mount -t 9p -o "$share" out /lowtail/out
ip link set lo up
read -r _ dir <<<"$(tr ' ' '\n' </proc/cmdline | sed -n 's/^lowtail.dir=/dir /p')"
PATH=$PATH bash /lowtail/virtme/guest.sh "$dir"
sync
echo o >/proc/sysrq-trigger
sleep 60
INIT
}

# insmod needs plain files in the order of their dependencies; the guest has no indexes before the shares are there.
copy_transport() {
	local n=10 path
	mkdir -p "$1/boot-modules"
	for path in $("$TOP/virtme/enter.sh" -- sh -c '
		kver=$1; shift
		for m; do modprobe -S "$kver" --show-depends "$m"; done | sed -n "s/^insmod \([^ ]*\).*/\1/p" | awk "!seen[\$0]++"' \
		sh "$2" "${transport[@]}"); do
		cp "$ROOT/$path" "$1/boot-modules/$n-${path##*/}"
		n=$((n + 1))
	done
	find "$1/boot-modules" -name '*.xz' -exec xz -d {} +
	find "$1/boot-modules" -name '*.zst' -exec zstd -q -d --rm {} +
}

make_guest() {
	local tmp=$CACHE/tmp-guest-arm64 mirror=() m f
	m=$(mirror)
	[ -z "$m" ] || mirror=("$m")
	rm -rf --one-file-system "$tmp"
	unshare --mount --propagation private -- mmdebstrap --variant=extract --architectures=arm64 \
		--include="$(guest_packages | paste -sd,)" \
		--aptopt='Apt::Install-Recommends "false"' --aptopt='Acquire::Retries "3"' \
		"$SUITE" "$tmp" "${mirror[@]}"
	rm -rf "$tmp"/usr/share/{man,doc,info,locale} "$tmp"/var/{cache,lib}/apt
	# What the maintainer scripts that were not run would have made.
	for f in bin sbin lib; do
		[ -e "$tmp/$f" ] || ln -s "usr/$f" "$tmp/$f"
	done
	ln -sf gawk "$tmp/usr/bin/awk"
	[ -e "$tmp/usr/bin/sh" ] || ln -s bash "$tmp/usr/bin/sh"
	printf 'root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/usr/sbin/nologin\n' >"$tmp/etc/passwd"
	printf 'root:x:0:\nnogroup:x:65534:\n' >"$tmp/etc/group"
	mkdir -p "$tmp"/{proc,sys,dev,tmp,run,root,lowtail}
	copy_transport "$tmp" "$1"
	write_init >"$tmp/init"
	chmod 755 "$tmp/init"
	"$TOP/virtme/enter.sh" -b "$tmp:/mnt" -- sh -c 'cd /mnt && find . -xdev | cpio -o -H newc --quiet' >"$2.tmp"
	rm -rf --one-file-system "$tmp"
	mv "$2.tmp" "$2"
}

need_root
lock_setup
kver=$(kernel_chosen)
kernel_ready "$kver" || die "there is no kernel '$kver' in the root yet" "LOWTAIL_ARCH=$KERNEL_ARCH make setup"
image=$CACHE/guest-$kver-$({
	guest_packages
	cat "${BASH_SOURCE[0]}"
} | short_hash).cpio
[ -e "$image" ] || logged guest "arm64 guest's initramfs" "the arm64 guest's initramfs could not be made from $(mirror_name)" \
	"$(mirror_remedy)" make_guest "$kver" "$image"
echo "$image"
