#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build the cargo workspace's programs inside the root:  virtme/programs.sh  (result in out/cargo/release)
#
# Crates come from the registry once, as Cargo.lock names them; every later build is offline and locked.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"

need_root
root_ready || die "there is no Debian root yet" "make setup"
lock=$TOP/selftests/Cargo.lock
[ -e "$lock" ] || exit 0
fetched=$CACHE/cargo/lowtail-fetched-$(short_hash <"$lock")
mkdir -p "$TOP/out" "$CACHE/cargo"

# A site's own registry settings hold inside too.
for config in "${CARGO_HOME:-${HOME:-/root}/.cargo}"/config{.toml,}; do
	if [ -e "$config" ] && ! cmp -s "$config" "$CACHE/cargo/config.toml"; then
		cp "$config" "$CACHE/cargo/config.toml"
	fi
done

exec 6>"$CACHE/cargo/lowtail.lock"
flock 6
if [ ! -e "$fetched" ]; then
	logged crates "crates of Cargo.lock" "the crates of selftests/Cargo.lock could not be fetched" \
		"check that cargo reaches its registry (http_proxy, https_proxy and CARGO_* are passed on), then start again" \
		"$TOP/virtme/enter.sh" -- cargo fetch --locked --manifest-path selftests/Cargo.toml \
		--target x86_64-unknown-linux-gnu
	: >"$fetched"
fi
# Beside the KDIR, whose longest step is one process: that one goes first, this fills the gaps.
logged programs "programs of the lab" "the programs did not build" "read the lines above; cargo's log is $CACHE/log/programs.log" \
	"$TOP/virtme/enter.sh" -- nice -n 15 cargo build --release --locked --offline --manifest-path selftests/Cargo.toml \
	-p rpctail -p report -p splicefwd
