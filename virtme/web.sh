#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What scenarios with a web server need beside the standard root:  virtme/web.sh SCENARIO…   (out/vtime/web-layer.cpio)
#
# Tomcat, its JVM and nginx are in a root of their own, made here once, so that the standard root does not grow by
# them.  Does nothing when no scenario asks for an image of kind web.

. "$(dirname -- "${BASH_SOURCE[0]}")/lib.sh"
. "$TOP/virtme/mirror.sh"
. "$TOP/virtme/extra-root.sh"

wanted=
for s; do
	[ ! -e "$TOP/selftests/scenarios/$s.sh" ] || ! grep -q '^# Image: web' "$TOP/selftests/scenarios/$s.sh" || wanted=1
done
[ -n "$wanted" ] || exit 0
need_root
lock_setup
make_extra_root web
mkdir -p "$TOP/out/vtime"
logged web-layer "Tomcat and nginx for the guest" "the image's part with Tomcat and nginx could not be made" \
	"read the lines above" "$TOP/virtme/enter.sh" -r "$(extra_root web)" -- \
	virtme/image-web.sh /lowtail/out/vtime/web-layer.cpio
