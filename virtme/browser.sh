#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Look at the report in a real browser:  virtme/browser.sh   (`make report-test`; KTAP, pages in out/report-test/)
#
# The browser is Debian's chromium in a root of its own, made here once: the standard root does not grow by
# it.  Looked at are the page of the sample in selftests/report/tests/sample, and that of out/ where there
# are records; then copies with a planted fault each, which have to be found.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
. "$TOP/virtme/mirror.sh"

browser_packages() { sed 's/#.*//' "$TOP/virtme/packages-browser" | tr -s ' \n' '\n' | sed '/^$/d' | sort -u; }

make_browser() {
	local tmp=$CACHE/tmp-browser mirror=() m
	m=$(mirror)
	[ -z "$m" ] || mirror=("$m")
	rm -rf --one-file-system "$tmp"
	unshare --mount --propagation private -- mmdebstrap --variant=minbase --architectures="$DEB_ARCH" \
		--include="$(browser_packages | paste -sd,)" \
		--aptopt='Apt::Install-Recommends "false"' \
		--aptopt='Acquire::Retries "3"' \
		--aptopt='Acquire::http::Timeout "30"' \
		--dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' \
		"$SUITE" "$tmp" "${mirror[@]}"
	# What enter.sh mounts on.
	mkdir -p "$tmp"/{lowtail,opt/cargo,usr/src/lowtail/src}
	sync -f "$tmp/usr"
	mv -T "$tmp" "$1"
}

need_root
lock_setup
root=$CACHE/browser-$({
	echo "format 1 $SUITE $DEB_ARCH"
	browser_packages
} | short_hash)
if [ ! -d "$root" ]; then
	need_space
	host_packages
	logged browser "Debian $SUITE root with chromium" "the browser's root could not be made from $(mirror_name)" \
		"$(mirror_remedy)" make_browser "$root"
fi

pages=$TOP/out/report-test
rm -rf "$pages"
mkdir -p "$pages/sample"
cp "$TOP"/selftests/report/tests/sample/*.json "$pages/sample/"
"$TOP/virtme/enter.sh" -- out/cargo/release/report --html out/report-test/sample >"$pages/log"
show=(out/report-test/sample/report.html)
if compgen -G "$TOP/out/*.json" >/dev/null; then
	"$TOP/virtme/enter.sh" -- out/cargo/release/report --html out >>"$pages/log"
	show+=(out/report.html)
fi
exec "$TOP/virtme/enter.sh" -p -r "$root" -- python3 selftests/report/tests/browser.py "${show[@]}"
