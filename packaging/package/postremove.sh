#!/bin/sh
# After the files have gone. What the agent keeps for the next goes with the programs; on purge the configuration goes, with safe
# mode's mark beside it.
set -e
case "$1" in
remove | 0) rm -rf "${DPKG_ROOT:-}/run/temper" ;;
purge) rm -rf "${DPKG_ROOT:-}/etc/temper" ;;
esac
[ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
