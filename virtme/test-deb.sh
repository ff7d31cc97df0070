#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Try the Debian packages on a machine of their own:  virtme/test-deb.sh  (KTAP; logs in out/deb/)
#
# Install them on trixie with an older kernel, boot it, upgrade the kernel, boot that, look at the signatures, purge.  apt, dpkg
# and DKMS are real and run in a chroot, the boots are real and run in QEMU.  Needs the network: the machine's apt does.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
. "$TOP/virtme/mirror.sh"
. "$TOP/virtme/machine.sh"
. "$TOP/virtme/secure-boot.sh"

need_root
log=$TOP/out/deb/log
n=0 failed=0
result() {
	n=$((n + 1))
	echo "$1 $n $2"
	[ "$1" = ok ] || failed=$((failed + 1))
}

# check NAME CMD…: one line of KTAP; what was said is kept, and shown when it failed.
check() {
	local name=$1 rc=0
	shift
	# Not `"$@" ||`: bash would ignore errors inside functions.
	set +e
	(
		set -e
		"$@"
	) >"$log/case-$((n + 1)).log" 2>&1 </dev/null
	rc=$?
	set -e
	if [ "$rc" = 0 ]; then
		result ok "$name"
	else
		tail -n 30 "$log/case-$((n + 1)).log" | sed 's/^/# /'
		result "not ok" "$name"
	fi
}

# booted NAME SETTING KERNEL CASES CMD [ARGUMENT…]: CMD boots; the guest's cases become ours.  A case that is not there has failed.
booted() {
	local what=$1 setting=$2 kver=$3 cases=$4 how=$5 got line
	shift 5
	say "boot: $what"
	"$how" "$setting" "$kver" "$@"
	while IFS= read -r line; do
		case $line in
		"ok "*) result ok "$what: ${line#ok }" ;;
		"not ok "*) result "not ok" "$what: ${line#not ok }" ;;
		"# "*) echo "$line" ;;
		esac
	done < <(cat "$SHARE/results" 2>/dev/null)
	got=$(grep -cE '^(not )?ok ' "$SHARE/results" 2>/dev/null || :)
	if [ "${got:-0}" != "$cases" ] || ! grep -qx 'done' "$SHARE/results"; then
		tail -n 20 "$TOP/out/deb/$setting.console" | sed 's/^/# console: /'
		result "not ok" "$what: ${got:-0} of $cases cases were reported"
	fi
}

status_of() { in_machine "$MACHINE" dkms status -m lowtail -k "$1"; }
installed_for() { status_of "$1" | grep -E '^lowtail/.*: installed$'; }

# The source of the older kernel goes when apt's autoremove finds it.
reinstalls() {
	apt_in "$MACHINE" purge "linux-source-$(echo "$OLD" | cut -d. -f1,2)"
	in_machine "$MACHINE" sh -c 'exec apt-get -qy install --reinstall /srv/debs/lowtail-dkms_*.deb'
	installed_for "$OLD"
	installed_for "$NEW"
}

nothing_in_etc() {
	if in_machine "$MACHINE" dpkg -L lowtail-dkms lowtail-tools | grep '^/etc'; then return 1; fi
	if grep -rlE 'dctcp_floor|autocork_policy' "$MACHINE/etc"; then return 1; fi
}

# What an administrator does: take the examples and remove the #.
enable() {
	local c examples=$MACHINE/usr/share/doc/lowtail-tools/examples
	for c in sysctl modules-load; do
		sed -E 's/^#([^ ])/\1/' "$examples/$c.conf" >"$MACHINE/etc/$c.d/lowtail.conf"
	done
	sed -i '/^tcp_dctcp_floor/d' "$MACHINE/etc/modules-load.d/lowtail.conf"
}

# kdir_says SHELL-COMMANDS: what stops a build after them, all of it.
kdir_says() {
	in_machine "$MACHINE" sh -ec "$1"'
		if said=$(/usr/src/lowtail-*/dkms/kdir.sh "$1" "/lib/modules/$1/build" 2>&1); then exit 1; fi
		echo "$said"' sh "$OLD"
}

without_bindgen() {
	local said
	said=$(kdir_says 'mkdir /tmp/bin; ln -s /usr/bin/* /tmp/bin; rm /tmp/bin/bindgen; PATH=/tmp/bin')
	echo "$said"
	[ "$said" = "lowtail-dkms: no build for $OLD: apt-get install bindgen" ]
}

another_rustc() {
	local said
	said=$(kdir_says '
		echo "#!/bin/sh" >/tmp/rustc
		echo "case \$1 in --print) echo /usr ;; *) echo rustc 1.97.1 ;; esac" >>/tmp/rustc
		chmod +x /tmp/rustc
		PATH=/tmp:$PATH')
	echo "$said"
	[ "$(echo "$said" | wc -l)" = 1 ]
	echo "$said" | grep -E "^lowtail-dkms: no build for .*: rustc is 'rustc 1.97.1', the kernel was built with 'rustc 1\.[0-9]+"
}

skips_612() {
	apt_in "$MACHINE" install --no-install-recommends linux-headers-amd64/"$SUITE" | tee "$log/6.12.log"
	grep -F "BUILD_EXCLUSIVE directive" "$log/6.12.log"
	if status_of "$(basename "$MACHINE"/usr/lib/modules/6.*)" | grep installed; then return 1; fi
}

# Its signature: by whom, and that it is over the bytes before it.
signed() {
	local ko=$1
	in_machine "$MACHINE" bash -euc '
		xz -dc "$1" >/tmp/m.ko 2>/dev/null || cp "$1" /tmp/m.ko
		modinfo /tmp/m.ko | grep -E "^(sig_id|signer|sig_hashalgo):"
		[ "$(modinfo -F sig_id /tmp/m.ko)" = PKCS#7 ]
		# struct module_signature is 12 bytes, its last 4 the length; the marker behind it has 28.
		size=$(stat -c %s /tmp/m.ko)
		length=$((0x$(tail -c 32 /tmp/m.ko | head -c 4 | od -An -tx1 | tr -d " \n")))
		head -c $((size - 40 - length)) /tmp/m.ko >/tmp/content
		tail -c $((40 + length)) /tmp/m.ko | head -c $length >/tmp/signature
		openssl x509 -inform DER -in /var/lib/dkms/mok.pub -out /tmp/mok.pem
		verify() { openssl cms -verify -binary -inform DER -in /tmp/signature -content "$1" -certfile /tmp/mok.pem -nointern -noverify -out /dev/null; }
		verify /tmp/content
		# Another byte, another verdict.
		printf x | dd of=/tmp/content bs=1 seek=4096 conv=notrunc status=none
		if verify /tmp/content; then exit 1; fi' bash "$ko"
}

# Whatever is named like us (but for the packages that this test put there), and what modprobe's indexes know.
left_behind() {
	(
		cd "$MACHINE"
		find . -xdev \( -path ./var/log -o -path ./srv/debs -o -path ./tmp \) -prune -o \
			\( -iname '*lowtail*' -o -name '*dctcp_floor*' -o -name '*autocork_policy*' \) -print
		find ./usr/lib/modules/*/updates ./var/lib/dkms/* -maxdepth 0 -type d 2>/dev/null || :
		grep -laE 'dctcp_floor|autocork_policy' ./usr/lib/modules/*/modules.* || :
		in_machine "$MACHINE" dpkg-query -W -f '${Package} ${db:Status-Status}\n' 'lowtail*' 2>/dev/null || :
	)
}

purged() {
	rm -f "$MACHINE"/etc/{sysctl,modules-load}.d/lowtail.conf
	apt_in "$MACHINE" purge lowtail-dkms lowtail-tools
	left_behind >"$log/left-behind"
	cat "$log/left-behind"
	[ ! -s "$log/left-behind" ]
}

# The check before must be able to fail.
finds_what_is_left() {
	mkdir -p "$MACHINE/var/cache/lowtail-dkms"
	[ "$(left_behind)" = ./var/cache/lowtail-dkms ]
	rmdir "$MACHINE/var/cache/lowtail-dkms"
}

[ "$SUITE-$KERNEL_ARCH" = "trixie-$DEB_ARCH" ] || die "the packages are tried on trixie, amd64" "make test-deb, without LOWTAIL_SUITE and LOWTAIL_ARCH"
mkdir -p "$log"
rm -f "$log"/*
echo "TAP version 13"
check "the packages build, and lintian has nothing to say" "$TOP/virtme/enter.sh" -- virtme/deb.sh
[ "$failed" = 0 ] || exit 1
new=$(kernel_chosen)
if [ -z "$(old_kernel "$new" 2>/dev/null)" ]; then
	logged index "package index of $KERNEL_SUITE" "the index of $KERNEL_SUITE could not be had" "$(mirror_remedy)" our_apt_update
fi
OLD=$(old_kernel "$new")
[ -n "$OLD" ] || die "$KERNEL_SUITE has no kernel but the one of $new's series, to upgrade from" "try again when it has two"
base=$(base_of "$OLD" "$(deb_version "$OLD")")
[ -d "$base" ] || logged machine "a machine with Debian $SUITE and the kernel $OLD" \
	"the machine could not be made from $(mirror_name)" "$(mirror_remedy)" make_base "$base" "$OLD" "$(deb_version "$OLD")"
rm -rf --one-file-system "$MACHINE" "$SHARE"
cp -a --reflink=auto "$base" "$MACHINE"
mkdir -p "$SHARE" "$MACHINE/srv/debs"
cp "$TOP"/out/deb/*.deb "$MACHINE/srv/debs/"

say "installing on $OLD"
check "the packages install on $SUITE with $OLD" \
	in_machine "$MACHINE" sh -c 'exec apt-get -qy -o APT::Keep-Downloaded-Packages=true --no-install-recommends install /srv/debs/*.deb'
# Nothing to look at otherwise.
[ "$failed" = 0 ] || exit 1
check "DKMS built and installed for $OLD" installed_for "$OLD"
check "nothing is on by default" nothing_in_etc
check "a missing package is told in one line" without_bindgen
check "another rustc than the kernel's is told in one line" another_rustc
check "a kernel without Rust (6.12) is skipped, and apt goes on" skips_612
enable
disk
booted "$OLD" loads "$OLD" 9 boot

say "upgrading the kernel"
check "the kernel upgrade goes through" apt_in "$MACHINE" install --no-install-recommends -t "$KERNEL_SUITE" \
	linux-image-amd64 linux-headers-amd64 linux-source
NEW=$(basename "$(find "$MACHINE/boot" -name 'vmlinuz-*' | sort -V | tail -n 1)")
NEW=${NEW#vmlinuz-}
check "it is a newer one: $NEW" [ "$NEW" != "$OLD" ]
check "DKMS rebuilt and installed for $NEW" installed_for "$NEW"
check "and kept what $OLD has" installed_for "$OLD"
check "a reinstall builds for both from the metadata that was kept" reinstalls
disk
booted "$NEW" loads "$NEW" 9 boot

for m in tcp_dctcp_floor autocork_policy; do
	check "$m: DKMS's signature verifies" signed "/lib/modules/$NEW/updates/dkms/$m.ko.xz"
done
booted "module.sig_enforce=1" unknown "$NEW" 4 boot module.sig_enforce=1
check "a firmware with Secure Boot and the key as a MOK" firmware "$NEW"
booted "Secure Boot with the MOK" enrolled "$NEW" 7 boot_with_firmware

check "purge leaves nothing" purged
check "(and what is left would be found)" finds_what_is_left
echo "1..$n"
say "logs: out/deb/log, out/deb/*.console"
echo "$((n - failed)) passed, $failed failed"
[ "$failed" = 0 ] || exit 1
# Some 6 GB; what failed is left to look at.
rm -rf --one-file-system "$MACHINE" "$SHARE" "$TOP"/out/deb/*.img
