#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every lint, as KTAP; runs inside the root:  virtme/enter.sh virtme/lint.sh [--fix]
#
# --fix only formats.  A lint that says anything fails: warnings are not something to get used to.

set -uo pipefail
cd /lowtail || exit 1
: "${KVER:?lint.sh: runs inside the root: make lint}"

# What git knows; a checkout whose git lies elsewhere (a worktree, a tarball) is listed as it is.
files() {
	local f p
	if git ls-files -- "$@" 2>/dev/null; then return; fi
	find . -name out -prune -o -name .git -prune -o -type f -print | sed 's|^\./||' | while read -r f; do
		for p; do
			# shellcheck disable=SC2254 # a pattern is meant
			case $f in $p) echo "$f" ;; esac
		done
	done
}

rustfmt=(rustfmt --edition 2021 --config-path "$KSRC/.rustfmt.toml")
mapfile -t kernel_rust < <(files 'rust/*.rs' | grep -v _generated.rs)
mapfile -t scripts < <(
	files '*' | while read -r f; do
		[ ! -f "$f" ] || ! sed -n 1p "$f" | grep -aE '^#!.*/(env )?(ba|da|)sh( |$)|shellcheck shell=' >/dev/null || echo "$f"
	done
	ls virtme/lib.sh virtme/mirror.sh
)

if [ "${1:-}" = --fix ]; then
	"${rustfmt[@]}" "${kernel_rust[@]}"
	cargo fmt --manifest-path selftests/Cargo.toml --all
	exit
fi

n=0 failed=0
# check NAME CMD…: one KTAP line; what the lint said comes before it.
check() {
	local name=$1 said rc=0
	shift
	n=$((n + 1))
	said=$("$@" 2>&1) || rc=$?
	if [ "$rc" = 0 ]; then
		echo "ok $n $name"
	else
		printf '%s\n' "$said" | tail -n 60 | sed 's/^/# /'
		echo "not ok $n $name"
		failed=$((failed + 1))
	fi
}

# clippy for the kernel is a build of its own, in a folder of its own, so that the real objects stay.
kernel_clippy() {
	local log
	mkdir -p "out/kbuild/clippy-$KVER"
	find "out/kbuild/clippy-$KVER" -name '*.o' -path '*/rust/*' -delete
	log=$(make -s -C "/lib/modules/$KVER/build" -j"$(nproc)" M=/lowtail MO="/lowtail/out/kbuild/clippy-$KVER" \
		CC="$KERNEL_CC" CLIPPY=1 modules 2>&1) || {
		echo "$log"
		return 1
	}
	echo "$log"
	! grep -E '^(warning|error)' <<<"$log" >/dev/null
}

licences() {
	local f bad=0
	while read -r f; do
		[ -f "$f" ] || continue
		sed -n 1,3p "$f" | grep 'SPDX-License-Identifier: GPL-2.0' >/dev/null || {
			echo "$f: no SPDX-License-Identifier: GPL-2.0 in its first lines"
			bad=1
		}
	done < <(files '*.rs' '*.c' '*.h' '*.sh' '*.py' Kbuild Makefile '*/Makefile')
	return $bad
}

# DESIGN: unsafe code stands in rust/net/ only.
unsafe_places() {
	! files 'rust/*.rs' | grep -v ^rust/net/ | xargs grep -nE '^[^/"]*\bunsafe\b' | grep -vE 'unsafe_|forbid|deny'
}

# The tables in docs/ name cases of the tests, in double quotes: each must be there. A name may be cut off by "…".
cases_in_docs() {
	local where name bad=0
	while IFS=: read -r where name; do
		name=${name#\"} name=${name%\"}
		name=${name%…}
		grep -qF -- "${name% }" selftests/*.py selftests/*.sh || {
			echo "$where: no test has a case '$name'"
			bad=1
		}
	done < <(grep -oE '"[^"]+"' docs/window.md docs/rfc8257.md docs/features.md)
	return $bad
}

echo "TAP version 13"
if [ ${#kernel_rust[@]} -gt 0 ]; then
	check "rustfmt: the kernel's style" "${rustfmt[@]}" --check "${kernel_rust[@]}"
	check "clippy: the kernel's lints" kernel_clippy
	check "unsafe only in rust/net" unsafe_places
fi
if [ -e selftests/Cargo.toml ]; then
	check "cargo fmt" cargo fmt --manifest-path selftests/Cargo.toml --all --check
	check "cargo clippy" cargo clippy -q --offline --locked --manifest-path selftests/Cargo.toml --all-targets -- -D warnings
fi
check "shellcheck" shellcheck -x -P SCRIPTDIR "${scripts[@]}"
check "SPDX headers" licences
check "cases that docs/ names" cases_in_docs
echo "1..$n"
[ "$failed" = 0 ]
