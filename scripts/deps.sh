#!/bin/bash
# Install what the build, the tests and the lab need, on Debian 12, Debian 13 and Ubuntu (24.04 or
# newer). What is there already is left alone; when nothing is missing this takes a blink.
#
# Debian 12 gets newer versions from its backports, through an apt state of this script's own:
# the host's sources stay as they are.
set -euo pipefail

# A Go of this version or newer fetches the one that go.mod asks for.
readonly MIN_QEMU=8 MIN_CLANG=17 MIN_LIBBPF=1.4 MIN_GO=1.21

fail() {
	echo "deps: $1" >&2
	exit "${2:-1}"
}

at_least() { # VERSION MINIMUM
	[ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

package_version() { # the upstream part of an installed package's version, or nothing
	dpkg-query -W -f '${Status} ${Version}\n' "$1" 2>/dev/null |
		sed -n 's/^install ok installed \([0-9]*:\)\{0,1\}\([0-9.]*\).*/\2/p'
}

has() { [ -n "$(package_version "$1")" ]; }

go_version() { # of the go that is found, without what it would fetch, or nothing
	local version
	version=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null) || return 0
	echo "${version#go}"
}

newest_clang() { # the highest usable clang version that is installed
	local v
	for v in 22 21 20 19 18 17; do
		if has "clang-$v" && has "llvm-$v"; then
			echo "$v"
			return
		fi
	done
}

# What is missing, one package a line; "clang" stands for a version to be chosen.
missing() {
	at_least "$(package_version qemu-system-x86)" "$MIN_QEMU" || echo qemu-system-x86
	at_least "$(package_version libbpf-dev)" "$MIN_LIBBPF" || echo libbpf-dev
	[ -n "$(newest_clang)" ] || echo clang
	at_least "$(go_version)" "$MIN_GO" || echo golang-go
	# libzstd: a static libelf needs it. The keyring: the lab verifies Debian's kernels on Ubuntu too.
	# From iproute2 on: the network and the disk of the node of 'make e2e', and its runc; AppArmor's compiler, for the guest's
	# tests; what 'make site' keeps its packages in; what signs releases, and verifies them.
	for p in libelf-dev zlib1g-dev libzstd-dev gcc libc6-dev make debian-archive-keyring iproute2 e2fsprogs libseccomp-dev apparmor python3-venv gpg gpg-agent rpm debsig-verify; do
		has "$p" || echo "$p"
	done
	# An Ubuntu host's apt knows no Debian mirror; debootstrap does.
	[ "$distribution" != ubuntu ] || has debootstrap || echo debootstrap
}

# A distribution's Go may be older than what go.mod asks for, and may be told not to fetch that.
check_go() {
	local want
	want=$(sed -n 's/^go //p' "$(dirname "$0")/../go.mod")
	(cd "$(dirname "$0")/.." && go version >/dev/null 2>&1) ||
		fail "Go $(go_version) cannot fetch Go $want, which go.mod asks for ($(cd "$(dirname "$0")/.." && go version 2>&1 | tail -n 1)); unset GOTOOLCHAIN, check the network, or install Go $want" 13
}

# The Debian archive that this host uses, as lab/apt/mirror.go finds it.
find_mirror() {
	local uri
	uri=${TEMPER_DEBIAN_MIRROR:-$(
		cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
			grep -v '^[[:space:]]*#' | grep -Eo 'https?://[^[:space:]]+/debian/?([[:space:]]|$)' | head -n 1 || true
	)}
	uri=${uri%%[[:space:]]*}
	[ -n "$uri" ] || fail "this host's apt configuration names no Debian mirror; set TEMPER_DEBIAN_MIRROR to the address of one" 9
	echo "${uri%/}"
}

# An apt state that adds backports to the host's sources, over the host's list of installed packages.
use_backports() {
	local dir parts
	dir=$(mktemp -d)
	trap "rm -rf '$dir'" EXIT
	parts=$dir/sources.list.d
	mkdir -p "$dir/lists/partial" "$parts"
	cp /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources "$parts" 2>/dev/null || true
	[ ! -f /etc/apt/sources.list ] || cp /etc/apt/sources.list "$parts/host.list"
	echo "deb $(find_mirror) $1-backports main" >"$parts/temper-backports.list"
	apt_options+=(-o "Dir::State::lists=$dir/lists" -o "Dir::Etc::sourceparts=$parts" -o Dir::Etc::sourcelist=/dev/null
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root)
}

# apt-get, quiet when all is well; its own words and an exit status when not.
apt() {
	local log status=0
	log=$(LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -qq "${apt_options[@]}" "$@" 2>&1) || status=$?
	[ "$status" != 0 ] || return 0
	echo "$log" | tail -n 15 >&2
	case $log in
	*"No space left on device"* | *"enough free space"*) fail "the disk is full; make room and run 'make deps' again" 12 ;;
	*"Could not resolve"* | *"Temporary failure resolving"* | *"onnect"*) fail "the package archive is out of reach; check the network and its proxy" 13 ;;
	esac
	fail "apt-get $1 failed"
}

# The names that the distribution's archive has for what is missing.
package_names() {
	local p v
	for p in $1; do
		case $p in
		clang)
			for v in 19 20 21 22 18 17; do
				if [[ $(apt-cache "${apt_options[@]}" policy "clang-$v") == *"Candidate: "[0-9]* ]]; then
					echo "clang-$v llvm-$v"
					continue 2
				fi
			done
			fail "$distribution $release has no clang of version $MIN_CLANG or newer"
			;;
		*) echo "$p" ;;
		esac
	done
}

distribution=$(. /etc/os-release 2>/dev/null && echo "${ID:-}") || true
release=$(. /etc/os-release 2>/dev/null && echo "${VERSION_ID:-}") || true
apt_options=()
target=()

wanted=$(missing | tr '\n' ' ')
if [ -z "$wanted" ]; then
	check_go
	exit 0
fi

case $distribution in
debian) at_least "${release:-99}" 12 || fail "Debian $release is too old; use Debian 12 or newer" ;;
ubuntu) at_least "$release" 24.04 || fail "Ubuntu $release is too old; use Ubuntu 24.04 or newer" ;;
*) fail "this is neither Debian nor Ubuntu; install by hand: $wanted(QEMU >= $MIN_QEMU, clang >= $MIN_CLANG, libbpf >= $MIN_LIBBPF, Go >= $MIN_GO)" ;;
esac
[ "$(id -u)" = 0 ] || fail "not root; run 'sudo make deps', or install by hand: $wanted" 3

if [ "$distribution/$release" = debian/12 ]; then
	use_backports bookworm
	target=(-t bookworm-backports)
fi
apt update -o APT::Update::Error-Mode=any
names=$(package_names "$wanted")
echo "deps: installing" $names
# shellcheck disable=SC2086 # a list of words
apt install -y --no-install-recommends "${target[@]}" $names

left=$(missing | tr '\n' ' ')
case $left in
'') ;;
"golang-go ") fail "$(command -v go) is Go $(go_version), and comes before the one that is installed now; take it out of the PATH" ;;
*) fail "$distribution $release has no version that is new enough of: $left(needed: QEMU >= $MIN_QEMU, clang >= $MIN_CLANG, libbpf >= $MIN_LIBBPF, Go >= $MIN_GO)" ;;
esac
check_go
