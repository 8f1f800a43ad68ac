#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Install what the path plane's C++ and Java parts need, on Debian and Ubuntu. When nothing is missing this takes a blink.
set -euo pipefail

missing=()
for p in g++ cmake make doctest-dev libthrift-dev thrift-compiler libboost-dev libevent-dev maven openjdk-17-jdk-headless; do
	[ "$(dpkg-query -W -f '${Status}' "$p" 2>/dev/null)" = "install ok installed" ] || missing+=("$p")
done
[ ${#missing[@]} != 0 ] || exit 0

[ "$(id -u)" = 0 ] || { echo "pathfence-deps: not root; run 'sudo make pathfence-deps', or install by hand: ${missing[*]}" >&2; exit 3; }
echo "pathfence-deps: installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# An archive's list may be old or absent: it is fetched where the packages are not found at once.
if ! DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
	if ! { apt-get -qq update -o APT::Update::Error-Mode=any && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
		tail -n 15 "$log" >&2
		echo "pathfence-deps: apt-get failed; check the network, its proxy, and the disk" >&2
		exit 1
	fi
fi
