# shellcheck shell=bash disable=SC2034,SC2154 # scenario and variant are lib.sh's
# SPDX-License-Identifier: GPL-2.0
#
# T0-web: T0 with Debian's web servers: a servlet of Tomcat's that writes 3096 bytes and flushes, and nginx.
#
# Image: web
#
# Both set TCP_NODELAY by themselves, rpctail asks at a constant rate. `tomcat`: Tomcat 10 with one connector and one
# servlet (selftests/apps); the reply is chunked, and its end, 5 bytes, is a write of its own. `proxied`: the same
# through nginx, unbuffered, which passes both writes on. `file`: a file of 3096 bytes by nginx, a head in one
# write and the file by sendfile: the small write comes first, which autocorking does not hold. The
# JVM stops at its first compiler, so that few methods are compiled anew while it is measured; its collections of garbage are
# in the tails, under all variants.
#
# Control: stock must count TCPAutoCorking and be slower at p50 than
#   net.ipv4.tcp_autocorking=0 in the same boot. Void: it is not, for tomcat and proxied; of file the finding says it.
# Public figures (netdev 2023-12 "tcp: disable tcp_autocorking for socket when TCP_NODELAY flag is
#   set", Tomcat on arm64): p99.99 43.62 -> 2.27 ms, max 49.34 -> 4.57 ms. There a lost wake-up (T1) made 40 ms of it.

conns=8
rate=500

# shellcheck source=selftests/scenarios/replies.sh
. /scenarios/replies.sh

java=/usr/lib/jvm/java-21-openjdk-amd64/bin/java
home=/usr/share/tomcat10
require $java "the image must be of kind web"
require nginx "the image must be of kind web"
replies_net
# Whom nginx's worker runs as.
echo 'nobody:x:65534:65534::/:/bin/sh' >>/etc/passwd
echo 'nogroup:x:65534:' >>/etc/group
on left $java -XX:TieredStopAtLevel=1 -Xmx64m \
	-Dcatalina.home=$home -Dcatalina.base=/srv/tomcat -Djava.io.tmpdir=/srv/tomcat/temp \
	-cp $home/bin/bootstrap.jar:$home/bin/tomcat-juli.jar org.apache.catalina.startup.Bootstrap start >/tmp/tomcat.log 2>&1 &
on left nginx -c /srv/nginx.conf >/tmp/nginx.log 2>&1 &

# ask ADDRESS PATH ARGUMENT...
ask() {
	echo --connect "10.0.0.1:$1" --http "$2" --nodelay=client --conns $conns --rate $rate
}

# warm PORT PATH EXCHANGES: so many on each connection, of which nothing is recorded.
warm() {
	# shellcheck disable=SC2046 # words
	on right rpctail client $(ask "$1" "$2") --wait 5m --warmup-exchanges "$3" --duration 1s --quiet || {
		cat /tmp/tomcat.log /tmp/nginx.log >&2
		return 1
	}
}

say "Tomcat starts, and has its first 16000 requests"
warm 8080 /reply 1500
warm 8081 /proxied 500
settle
load() {
	# shellcheck disable=SC2046 # words
	replies tomcat $(ask 8080 /reply) --duration 4s --warmup 500ms
	# shellcheck disable=SC2046
	replies proxied $(ask 8081 /proxied) --duration 4s --warmup 500ms
	# shellcheck disable=SC2046
	replies file $(ask 8081 /reply) --duration 2s --warmup 500ms
}
compare load
must_hold tomcat p50
must_hold proxied p50
text="$(sed -n 's/.*Starting Servlet engine: \[\(.*\)\]/\1/p' /tmp/tomcat.log), $(nginx -v 2>&1 | sed 's/.*: //'), \
$rate requests a second of 3096 bytes."
for flow in tomcat proxied file; do
	fault="stock corked $(value stock $flow TCPAutoCorking) times"
	held $flow p50 || fault="stock shows no fault here, $fault"
	text="$text $flow: $fault; p50 in us: $(of $flow p50); p99: $(of $flow p99)."
done
finding - meaning "$text"
