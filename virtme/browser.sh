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
. "$TOP/virtme/extra-root.sh"

need_root
lock_setup
make_extra_root browser
root=$(extra_root browser)

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
