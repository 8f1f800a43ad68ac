#!/bin/sh
# Before the files go: the agent ends, and leaves the node as it was. Not where another version comes.
set -e
[ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ] || exit 0
case "$1" in
remove | 0) systemctl --quiet disable --now temper.service ;;
esac
