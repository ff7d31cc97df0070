#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Build the Debian packages, as lintian wants them; runs inside the root:  virtme/enter.sh virtme/deb.sh  (out/deb/*.deb)
#
# The version is debian/changelog's at the tag of that name, else that with ~git, the commit's time and its name: each
# commit's packages are newer than those of the one before, and all are older than the release.

set -euo pipefail
cd /lowtail

base=$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)
version=$base time=$(date +%s)
if git rev-parse -q --verify HEAD >/dev/null 2>&1; then
	time=$(git log -1 --format=%ct)
	if [ "$(git describe --tags --exact-match 2>/dev/null)" != "v$base" ]; then
		version=$base~git$(date -u -d "@$time" +%Y%m%d.%H%M%S).$(git rev-parse --short=8 HEAD)
	fi
	git diff --quiet HEAD || version+=.changed
fi

out=out/deb tree=out/deb/lowtail-$version
rm -rf out/deb/lowtail-* out/deb/lowtail*_* # the former version's tree and packages
mkdir -p "$tree"
{ git ls-files -z --cached --others --exclude-standard 2>/dev/null || find . -path ./out -prune -o -type f -print0; } |
	tar --null --files-from=- -cf - | tar -xf - -C "$tree"

cd "$tree"
sed -i "1s/(.*)/($version)/; s/^\( -- .*>  \).*/\1$(date -u -R -d "@$time")/" debian/changelog
sed -i "s/^PACKAGE_VERSION=.*/PACKAGE_VERSION=\"$version\"/" dkms.conf
export SOURCE_DATE_EPOCH=$time CARGO_TARGET_DIR=/lowtail/out/deb/cargo
export DEB_BUILD_OPTIONS=noautodbgsym
# The root has no C++, which build-essential asks for and nothing here needs.
dpkg-buildpackage --ignore-builtin-builddeps --build=binary --no-sign >../build.log 2>&1 || {
	tail -n 30 ../build.log >&2
	echo "lowtail: error: the packages did not build: the end of out/deb/build.log is above" >&2
	exit 1
}
cd /lowtail
rm -r "$tree"
lintian --allow-root --fail-on error,warning "$out"/*.changes
ls "$out"/*.deb
