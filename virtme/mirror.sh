# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Which Debian mirror to use, and the host's part of the set-up: its few packages, and an apt of our own
# beside the machine's, which knows the suite of the kernels without touching the machine's sources.

# The mirror: DEBIAN_MIRROR, else the one this machine uses for Debian itself, else nothing, which leaves
# the choice to mmdebstrap's default.  Security and third-party archives hold no trixie, hence the filter.
mirror() {
	if [ -n "${DEBIAN_MIRROR:-}" ]; then
		echo "${DEBIAN_MIRROR%/}"
		return
	fi
	# RELEASE is the suite as written in the sources: known even before the first `apt-get update`.
	apt-get indextargets --format '$(CREATED_BY) $(RELEASE) $(COMPONENT) $(REPO_URI)' 2>/dev/null |
		awk '$1 == "Packages" && $2 ~ /^(stable|testing|unstable|sid|bookworm|trixie|forky|duke)$/ && $3 == "main" &&
			$4 ~ /^(https?|file|ftp):/ && $4 !~ /security/ { sub(/\/$/, "", $4); if (!n++) print $4 }'
}

mirror_name() {
	local m
	m=$(mirror)
	echo "${m:-the default mirror of mmdebstrap}"
}

mirror_remedy() {
	if [ -n "${DEBIAN_MIRROR:-}" ]; then
		echo "check DEBIAN_MIRROR (now '$DEBIAN_MIRROR'): it must answer and carry $SUITE and $KERNEL_SUITE; then start again, it goes on from here"
	else
		echo "check the network and the apt sources (apt-get update), or name a mirror that carries $SUITE: DEBIAN_MIRROR=URL make …; then start again, it goes on from here"
	fi
}

keyring() {
	local k
	for k in /usr/share/keyrings/debian-archive-keyring.{pgp,gpg}; do
		if [ -e "$k" ]; then
			echo "$k"
			return
		fi
	done
}

# Install what the host lacks.  Nothing is asked, and nothing happens when all is there.
host_packages() {
	local want=() pkg cmd
	while read -r cmd pkg; do
		command -v "$cmd" >/dev/null || want+=("$pkg")
	done <<-END
		mmdebstrap mmdebstrap
		unshare util-linux
		flock util-linux
		xz xz-utils
		make make
		awk mawk
	END
	# An old keyring cannot verify trixie, nor sid, which is signed with the keys of releases.
	[ -e "/usr/share/keyrings/debian-archive-trixie-stable.gpg" ] ||
		[ -e "/usr/share/keyrings/debian-archive-trixie-stable.pgp" ] || want+=(debian-archive-keyring)
	[ ${#want[@]} -gt 0 ] || return 0
	command -v apt-get >/dev/null ||
		die "this machine lacks ${want[*]} and has no apt-get" "run on Debian 12 or 13, or install them by hand"
	logged host-update "apt-get update on this machine" \
		"apt-get update failed on this machine" "mend its apt sources or its network, then start again" \
		apt-get update -q
	logged host-packages "host packages: ${want[*]}" \
		"host packages could not be installed: ${want[*]}" "apt-get install ${want[*]}" \
		env DEBIAN_FRONTEND=noninteractive \
		apt-get install -qy --no-install-recommends -o DPkg::Lock::Timeout=120 "${want[@]}"
}

# Whether an index may be older than it says of itself, as this machine's apt has it: a mirror that keeps snapshots
# serves such, and sid's last for days.
valid_until() {
	local v
	v=$(apt-config dump --format '%v%n' Acquire::Check-Valid-Until 2>/dev/null)
	echo "${v:-true}"
}

# Sources, state and downloads of our apt.
apt_dir() { echo "$CACHE/apt$VARIANT"; }

# our_apt TOOL ARGS…: apt with state of our own.  $1 is apt-get or apt-cache.
our_apt() {
	local tool=$1 d
	d=$(apt_dir)
	shift
	mkdir -p "$d/state/lists/partial" "$d/cache/archives/partial"
	: >>"$d/status"
	"$tool" -q -o Dir::Etc::SourceList="$d/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
		-o Dir::State="$d/state" -o Dir::State::status="$d/status" -o Dir::Cache="$d/cache" \
		-o APT::Architecture="$KERNEL_ARCH" -o APT::Architectures="$KERNEL_ARCH" -o APT::Sandbox::User=root \
		-o Acquire::Check-Valid-Until="$(valid_until)" -o Acquire::Languages=none \
		-o Acquire::Retries=3 -o Acquire::http::Timeout=30 "$@"
}

# Without a mirror of the machine's own, take the one that mmdebstrap wrote into the root.
our_apt_update() {
	local m key d
	m=$(mirror)
	if [ -z "$m" ] && root_ready; then
		m=$(awk '$1 == "deb" { for (i = 2; i <= NF; i++) if ($i ~ /^[a-z]+:/) { if (!n++) print $i } }' \
			"$ROOT/etc/apt/sources.list")
	fi
	[ -n "$m" ] || return 3
	key=$(keyring)
	d=$(apt_dir)
	mkdir -p "$d"
	echo "deb${key:+ [signed-by=$key]} $m $KERNEL_SUITE main" >"$d/sources.list"
	# An index that could not be fetched is only a warning to apt; here it is the whole point.
	our_apt apt-get update -o APT::Update::Error-Mode=any
}
