#!/bin/sh
# Runs once the files are there. Nothing is put in force by an installation; an upgrade of what is in force leaves the
# scheduler attached, and the new agent adopts or replaces it.
set -e
# DPKG_ROOT: into a file system that is not running.
[ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
# deb: configure, with the version before; rpm: how many there are.
case "$1:${2:-}" in
configure:?* | 2:*)
	if systemctl --quiet is-active temper.service; then
		systemctl kill --signal=SIGUSR1 --kill-whom=main temper.service
	fi
	;;
esac
