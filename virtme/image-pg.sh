# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# image-pg.sh: the part of image.sh that adds PostgreSQL and a cluster made beforehand.
# Sourced by it; uses its $dir (kept between runs) and $tree (the image in the making).
#
# A cluster has random numbers in it (its identifier, its keys), so it is made once
# for an image folder: T2's records are the same at each run on one machine, and may
# differ by instructions on another.

: "${dir:?}" "${tree:?}"

# PostgreSQL refuses to run as root.
as_postgres() {
	setpriv --reuid=postgres --regid=postgres --clear-groups env -i PATH="$pg:$PATH" TZ=UTC LC_ALL=C "$@"
}

make_cluster() {
	local work
	[ -e "$dir/cluster.tar" ] && return
	work=$(mktemp -d)
	chmod 711 "$work"
	install -d -o postgres -g postgres -m 700 "$work/cluster"
	# 1 MB of WAL a segment: less to unpack in the guest.
	as_postgres initdb -D "$work/cluster" --auth=trust --no-sync --no-locale --encoding=UTF8 \
		--wal-segsize=1 --set max_connections=20 --set shared_buffers=8MB \
		--set fsync=off --set autovacuum=off --set jit=off --set max_wal_size=8MB \
		--set min_wal_size=2MB --set timezone=UTC >"$dir/initdb.log" 2>&1 || {
		echo "image.sh: initdb failed, see $dir/initdb.log" >&2
		return 1
	}
	tar -C "$work" -cf "$dir/cluster.tar.new" cluster
	mv "$dir/cluster.tar.new" "$dir/cluster.tar"
	rm -rf "$work"
}

add_postgres() {
	local share
	# Debian keeps one folder a major version; the newest counts.
	pg=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin | sort -V | tail -n 1)
	[ -x "$pg/postgres" ] || {
		echo "image.sh: no PostgreSQL server in this root (package postgresql)" >&2
		return 1
	}
	make_cluster
	PATH=$pg:$PATH add_program postgres setpriv pasta
	share=/usr/share/postgresql/$(basename "$(dirname "$pg")")
	mkdir -p "$tree${pg%/bin}/lib" "$tree$share" "$tree/usr/share/zoneinfo/Etc"
	cp -r "$share/timezonesets" "$tree$share/"
	cp -L /usr/share/zoneinfo/UTC "$tree/usr/share/zoneinfo/UTC"
	cp -L /usr/share/zoneinfo/UTC "$tree/usr/share/zoneinfo/Etc/UTC"
	ln -sf "../..$pg/postgres" "$tree/usr/bin/postgres"
	grep -E '^postgres:' /etc/passwd >>"$tree/etc/passwd"
	grep -E '^postgres:' /etc/group >>"$tree/etc/group"
	mkdir -p "$tree/var/lib/postgresql"
	tar -C "$tree/var/lib/postgresql" -xpf "$dir/cluster.tar"
}
