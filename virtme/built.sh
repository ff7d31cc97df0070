#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build the kernel that KERNEL=NAME asks for:  virtme/built.sh     (set-up calls it; virtme/NAME.config says what it is)
#
# The source is that of the stock kernel, untouched; virtme/guest.config and NAME.config are all that is on.  The build
# tree is the modules' KDIR.  Everything goes to $CACHE/built-RELEASE, and RELEASE carries a hash of what decides the
# kernel: config, source, toolchain.  An interrupted build goes on where it was.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

need_root
: "${KERNEL:?built.sh: KERNEL, the name of a config in virtme/, is not set}"
release=$(kernel_chosen)
base=$(kernel_stock)
kernel_ready "$base" || die "there is no kernel '$base' in the root yet" "make setup"
if is_built "$release"; then exit 0; fi
kdir=$(kdir_of "$release")
built=$(built_dir "$release")
# Other set-ups need not wait for a build of ten minutes, nor other kernels; another build of the same one must.
mkdir -p "$built"
exec 6>"$built/lock"
if ! flock -n 6; then
	say "waiting for another build of $release"
	flock 6
fi
if is_built "$release"; then exit 0; fi

modules=/usr/lib/modules/$release

# enter CMD…: in the root, with the unfinished tree where the finished one will be, since it remembers its name.
enter() {
	mkdir -p "$built/kdir" "$built/modules" "$ROOT$kdir" "$ROOT$modules"
	"$TOP/virtme/enter.sh" -b "$built/kdir:$kdir" -b "$built/modules:$modules" -- "$@"
}

# allnoconfig drops without a word what it cannot have, so each line is asked for again.
configure() {
	local lost
	mkdir -p "$built/kdir"
	{
		config_lines "$KERNEL"
		echo "CONFIG_LOCALVERSION=\"${release#"$(version_number "$base")"}\""
	} >"$built/kdir/wanted"
	enter sh -ec '
		src=$1 kdir=$2
		shift 2
		make -C "$src" O="$kdir" "$@" KCONFIG_ALLCONFIG="$kdir/wanted" allnoconfig
		make -C "$src" O="$kdir" "$@" -s rustavailable' \
		sh "$(source_of "$base")" "$kdir" "${BUILT_CC[@]}"
	lost=$(grep -vxFf "$built/kdir/.config" "$built/kdir/wanted" | grep '=' || :)
	[ -z "$lost" ] || {
		echo "*** the source's Kconfig does not give:" "$lost"
		return 1
	}
}

compile() {
	enter make -C "$kdir" -j"$(nproc)" "${BUILT_CC[@]}" vmlinux bzImage modules
}

# What Debian's packages put there for the stock kernel.
install_built() {
	enter sh -ec '
		kdir=$1 release=$2 modules=$3
		shift 3
		[ "$(cat "$kdir/include/config/kernel.release")" = "$release" ]
		make -s -C "$kdir" "$@" INSTALL_MOD_PATH=/usr DEPMOD=true modules_install
		cp "$kdir/$(make -s -C "$kdir" "$@" image_name)" "$modules/vmlinuz"
		cp "$kdir/.config" "$modules/config"
		cp "$kdir/System.map" "$modules/"
		ln -sfn "$kdir" "$modules/build"
		depmod "$release"' sh "$kdir" "$release" "$modules" "${BUILT_CC[@]}"
	cp "$ROOT/usr/lib/lowtail/kernel-$base" "$built/source"
	sync -f "$built"
	: >"$built/complete"
}

logged "kernel-$KERNEL-config" "configuring the kernel $release" "virtme/$KERNEL.config does not fit this source" \
	"read $CACHE/log/kernel-$KERNEL-config.log" configure
logged "kernel-$KERNEL" "building the kernel $release" "the kernel $release could not be built" \
	"read $CACHE/log/kernel-$KERNEL.log; when its end is no use: rm -r $built, then start again" compile
logged "kernel-$KERNEL-install" "installing the kernel $release" "the kernel $release could not be installed" \
	"look at the free space, then start again" install_built
