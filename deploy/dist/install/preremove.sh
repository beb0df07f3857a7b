#!/bin/sh
# Before the package is removed. An upgrade (dpkg: "upgrade", rpm: 1) leaves the process to postinstall.sh.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now pinwheel.service
	fi
	;;
esac
