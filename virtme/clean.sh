#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Remove what the scripts made:  virtme/clean.sh build   out/ and the objects of a build in place
#                                virtme/clean.sh all     the shared cache too
#
# Nothing is removed through a mount or under a running guest: both are looked for first.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

# A mount below a folder that is to go would take the mounted thing along.
no_mounts_below() {
	local below
	below=$(awk -v d="$1" 'index($5, d "/") == 1 || $5 == d { print $5 }' /proc/self/mountinfo)
	[ -z "$below" ] || die "there are mounts below $1: $(echo "$below" | paste -sd' ')" "umount them, then start again"
}

build() {
	local f
	no_mounts_below "$TOP/out"
	rm -rf --one-file-system "$TOP/out"
	# The names that Kbuild makes, and only where it makes them.
	find "$TOP" -maxdepth 1 -type f \( -name '*.ko' -o -name '*.o' -o -name '*.mod' -o -name '*.mod.c' -o -name '.*.cmd' \
		-o -name Module.symvers -o -name modules.order \) -delete
	for f in rust selftests/{faults,beside,detectors,layouts}; do
		[ ! -d "$TOP/$f" ] || find "$TOP/$f" -type f \( -name '*.ko' -o -name '*.o' -o -name '*.s' -o -name '.*.cmd' -o -name '.*.d' \
			-o -name '*.mod' -o -name '*.mod.c' -o -name '*_generated.rs' -o -name modules.order -o -name Module.symvers \) -delete
	done
	rm -rf --one-file-system "$TOP/selftests/target"
}

case ${1:-} in
build) build ;;
all)
	[ -d "$CACHE" ] || {
		build
		exit 0
	}
	# Only a folder that a set-up of ours made: LOWTAIL_CACHE may have been mistyped.
	[ -e "$CACHE/setup.lock" ] || die "$CACHE does not look like a cache of lowtail" "remove it by hand if you are sure"
	exec 8>"$CACHE/setup.lock" 9>"$CACHE/use.lock"
	flock -n 8 || die "a set-up is running in $CACHE" "wait for it or end it, then start again"
	flock -n 9 || die "programs are running inside the root in $CACHE" "end the guests and shells there, then start again"
	no_mounts_below "$CACHE"
	build
	rm -rf --one-file-system "$CACHE"
	;;
*) die "usage: clean.sh build|all" ;;
esac
