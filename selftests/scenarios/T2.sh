# shellcheck shell=bash disable=SC2034,SC2154 # scenario and variant are lib.sh's
# SPDX-License-Identifier: GPL-2.0
#
# T2: a forwarder that applies Nagle to data passing through it.
#
# Image: pg
#
# A real PostgreSQL; a client that sends each extended-protocol query as two batches of
# messages, 56 bytes (Parse, Bind, Describe) and 50 us later 15 bytes (Execute, Sync), with
# NODELAY set; between them splicefwd, which splices and sets no option. The second
# batch waits in the forwarder for the ACK of the first, which the server delays, as it
# has nothing to answer yet. All on loopback in one namespace; but for pasta, the forwarder
# of today that sets NODELAY, whose client is in a namespace of its own, as it is meant.
#
# Control: the same client without the forwarder, with `splicefwd --nodelay`, and by pasta. Void:
#   the forwarder without NODELAY is not ten times slower at p50 than with it, or than pasta.
# Public figures (passt 2025-01 "tcp_splice: Set (again) TCP_NODELAY on both sides"):
#   76 and 15 bytes, 47.4 ms between request and answer; below 1 ms without Nagle.

queries=150

# through VARIANT PORT [NS]: the queries, by that port, from that namespace.
through() {
	variant=$1
	say "$variant: $queries queries"
	on "${3:-app}" pgbatch --connect "127.0.0.1:$2" --queries "$queries" --warmup 40 \
		--scenario "$scenario" --variant "$variant" | emit
}

require postgres "the image must be of kind pg"
require splicefwd "build selftests first"
require pasta "the image must be of kind pg"
setup_ns app
mkdir -p /var/run/postgresql
chown postgres /var/run/postgresql
on app setpriv --reuid=postgres --regid=postgres --clear-groups \
	postgres -D /var/lib/postgresql/cluster -c listen_addresses=127.0.0.1 >/tmp/postgres.log 2>&1 &
on app splicefwd --listen 127.0.0.1:6001 --connect 127.0.0.1:5432 >/dev/null &
on app splicefwd --listen 127.0.0.1:6002 --connect 127.0.0.1:5432 --nodelay >/dev/null &
# Loopback of `inner`, port 5432, becomes that of `app` by splice.
modprobe tun
ip netns add inner
ip -n inner link set lo up
on app pasta --foreground --quiet --ipv4-only --ns-ifname tap0 --tcp-ns 5432 --udp-ns none \
	--tcp-ports none --udp-ports none --runas 0 --netns-only --netns inner >/tmp/pasta.log 2>&1 &
for try in $(seq 100); do
	grep -q 'ready to accept connections' /tmp/postgres.log && break
	[ "$try" != 100 ] || {
		cat /tmp/postgres.log >&2
		exit 1
	}
	sleep 0.2
done
settle

through direct 5432
through stock 6001
through forwarder-nodelay 6002
through pasta 5432 inner
modprobe -q autocork_policy || finding - note "autocork_policy.ko is not in this image"
if has_sysctl app net.ipv4.tcp_splice_nodelay; then
	set_sysctl app net.ipv4.tcp_splice_nodelay 1
	through splice_nodelay=1 6001
	set_sysctl app net.ipv4.tcp_splice_nodelay 0
	through splice_nodelay=0 6001
else
	finding - note "this build has no net.ipv4.tcp_splice_nodelay: the cure in the kernel is not shown"
fi

variant=-
slow=$(value stock query p50)
fast=$(value forwarder-nodelay query p50)
greater "$slow" "$(awk -v f="$fast" 'BEGIN { print 10 * f }')" ||
	void "the forwarder without NODELAY ($slow us at p50) is not ten times slower than with it ($fast us)"
pasta=$(value pasta query p50)
greater "$slow" "$(awk -v f="$pasta" 'BEGIN { print 10 * f }')" ||
	void "the forwarder without NODELAY ($slow us at p50) is not ten times slower than pasta ($pasta us)"
finding - meaning "One query in two batches through a splicing forwarder: Nagle holds the second until the \
server's delayed ACK of the first. p50 $slow us; with NODELAY in the forwarder $fast us; by pasta, which sets it, $pasta us; \
without a forwarder $(value direct query p50) us."
