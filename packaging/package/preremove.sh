#!/bin/sh
# Before the files go: the agent ends, and leaves the node as it was. Not where another version comes.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
	systemctl --quiet disable --now temper.service
else
	# Into an image or a chroot: what 'systemctl enable' has made there would name a unit that is gone.
	rm -f "${DPKG_ROOT:-}/etc/systemd/system/multi-user.target.wants/temper.service"
fi
