#!/bin/bash
# Run a program that tests a node in a virtual machine: e2e.sh PROGRAM ARG...
#
# It runs in a network namespace of its own, so that its addresses are free and nobody else reaches what it starts:
# 10.99.0.1 is the API server's, for the node too; 10.0.2.15 is the node's. The emulator forwards what comes there for the
# kubelet, and answers only what comes from 127.0.0.1: else the guest would take the sender for itself.
set -euo pipefail

if [ "${1:-}" != --inside ]; then
	[ "$(id -u)" = 0 ] || { echo "e2e: run it as root: it makes a network namespace" >&2; exit 1; }
	PATH=$PATH:/usr/sbin:/sbin
	for need in ip:iproute2 mke2fs:e2fsprogs; do
		command -v "${need%:*}" >/dev/null || { echo "e2e: no ${need%:*}; install ${need#*:}" >&2; exit 1; }
	done
	# A process namespace, too: whatever ends the test ends all that it has started.
	exec unshare --net --pid --fork --kill-child --mount-proc -- "$0" --inside "$@"
fi
shift
ip link set lo up
ip addr add 10.99.0.1/32 dev lo
ip addr add 10.0.2.15/32 dev lo
ip route replace local 10.0.2.15 dev lo table local src 127.0.0.1
exec "$@"
