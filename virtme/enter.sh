#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run a command inside the trixie root, with this checkout at /lowtail:  virtme/enter.sh CMD…
#
# The root is read-only unless -w is given, so that nothing but the set-up can change it; /tmp and /run are
# fresh for each call, the cargo cache and the kernel sources are shared.  All mounts live in a mount
# namespace of the command's own and vanish with it: the cache never has a live mount that an `rm` outside could follow.
#
#   -w  the root writable         -r ROOT  another root than the current one
#   -m KVER  with out/modules/KVER as that kernel's modules    -b SOURCE:TARGET  one more bind mount
#   -p  a PID namespace of its own: all that CMD started ends with it

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

usage="usage: enter.sh [-w] [-p] [-r ROOT] [-m KVER] [-b SOURCE:TARGET]… [--] CMD…"

if [ "${1:-}" != --inside ]; then
	args=() root=$ROOT ns=()
	while getopts wpr:m:b: opt; do
		case $opt in
		w) args+=(-w) ;;
		p)
			args+=(-p)
			ns=(--pid --fork --kill-child)
			;;
		m) args+=(-m "$OPTARG") ;;
		r) root=$OPTARG ;;
		b) args+=(-b "$OPTARG") ;;
		*) die "$usage" ;;
		esac
	done
	shift $((OPTIND - 1))
	[ $# -gt 0 ] || die "$usage"
	need_root
	[ -d "$root/usr" ] || die "there is no Debian root yet" "make setup"
	mkdir -p "$CACHE/cargo" "$CACHE/src"
	# Held by all that runs inside; `make distclean` asks for it before it removes anything.
	exec 9>"$CACHE/use.lock"
	flock -s 9
	exec unshare --mount --propagation private "${ns[@]}" -- \
		"$BASH" "${BASH_SOURCE[0]}" --inside "$root" "${args[@]}" -- "$@"
fi

root=$2
shift 2
writable='' own_pids='' modules='' binds=()
while getopts wpm:b: opt; do
	case $opt in
	w) writable=1 ;;
	p) own_pids=1 ;;
	m) modules=$OPTARG ;;
	b) binds+=("$OPTARG") ;;
	*) die "$usage" ;;
	esac
done
shift $((OPTIND - 1))

kver=$(kernel_chosen)
! is_built "$kver" || mkdir -p "$root/usr/lib/modules/$kver" "$root$(kdir_of "$kver")"
mount --bind "$root" "$root"
[ -n "$writable" ] || mount -o remount,bind,ro "$root"
if [ -n "$own_pids" ]; then
	mount -t proc proc "$root/proc"
else
	mount --rbind /proc "$root/proc"
fi
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount --bind "$TOP" "$root/lowtail"
mount --bind "$CACHE/src" "$root/usr/src/lowtail/src"
mount --bind "$CACHE/cargo" "$root/opt/cargo"
# A kernel of our own is no part of the root, and as little to be changed.
if is_built "$kver"; then
	for b in "modules:/usr/lib/modules/$kver" "kdir:$(kdir_of "$kver")"; do
		mount --bind "$(built_dir "$kver")/${b%%:*}" "$root${b#*:}"
		mount -o remount,bind,ro "$root${b#*:}"
	done
fi
# Names and certificates are the host's as they are now: a site's proxy may sign with an authority of its own.
for f in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
	if [ -s "$f" ] && [ -e "$root$f" ]; then
		mount --bind "$(readlink -f "$f")" "$root$f"
	fi
done
# The stock modules stay where they are, below a folder whose indexes know ours too (see modules.sh).
if [ -n "$modules" ]; then
	mount --bind "$root/usr/lib/modules/$modules" "$root/mnt"
	mount --bind "$TOP/out/modules/$modules" "$root/usr/lib/modules/$modules"
	mount --bind "$root/mnt/kernel" "$root/usr/lib/modules/$modules/kernel"
	mount --bind "$root/mnt/vmlinuz" "$root/usr/lib/modules/$modules/vmlinuz"
	umount "$root/mnt"
fi
for b in "${binds[@]}"; do
	mount --bind "${b%%:*}" "$root${b#*:}"
done

# A clean environment, plus what the caller means for the programs inside: proxies, registries, our own knobs.
env=(
	PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/opt/vng/bin
	HOME=/tmp LANG=C.UTF-8 LC_ALL=C.UTF-8 TERM="${TERM:-dumb}"
	CARGO_HOME=/opt/cargo CARGO_TARGET_DIR="/lowtail/out/cargo$([ "$SUITE" = trixie ] || echo "-$SUITE")" CARGO_TERM_COLOR=never
	KERNEL_CC="$KERNEL_CC"
	# The checkout may belong to another user than root.
	GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=/lowtail
	CARGO_HTTP_CAINFO=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt
)
while IFS= read -r v; do
	case $v in
	CARGO_HOME | CARGO_TARGET_DIR | CARGO_HTTP_CAINFO | CARGO_TERM_COLOR | PIP_CERT | PIP_FIND_LINKS) ;;
	PIP_CONFIG_FILE | PIP_CACHE_DIR | PIP_TARGET | PIP_PREFIX | PIP_REQUIRE_VIRTUALENV | PIP_USER) ;;
	CARGO_BUILD_* | CARGO_INSTALL_ROOT | LOWTAIL_CACHE | LOWTAIL_LOCKED) ;;
	http_proxy | https_proxy | no_proxy | all_proxy | HTTP_PROXY | HTTPS_PROXY | NO_PROXY | ALL_PROXY | \
		CARGO_* | PIP_* | LOWTAIL_* | V | TESTS | CI | SOURCE_DATE_EPOCH)
		env+=("$v=${!v}")
		;;
	esac
done < <(compgen -e)

# What the scripts inside ask for: the kernel under test, its source, and our modules for it.
if kernel_ready "$kver"; then
	env+=("KVER=$kver" "KSRC=$(source_of "$kver")" "MOD_DIR=/lowtail/out/kbuild/$kver")
fi

# Keep the caller's place when it is inside the checkout.
cwd=/lowtail
case $PWD/ in "$TOP"/*) cwd=/lowtail${PWD#"$TOP"} ;; esac
# shellcheck disable=SC2016 # expanded by the inner shell
exec chroot "$root" /usr/bin/env -i "${env[@]}" \
	/bin/sh -c 'cd "$1" && shift && exec "$@"' enter "$cwd" "$@"
