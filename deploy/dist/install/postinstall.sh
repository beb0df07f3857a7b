#!/bin/sh
# After the package was installed or upgraded, by dpkg or rpm.
set -e
if ! getent group pinwheel >/dev/null; then
	groupadd --system pinwheel
fi
if ! getent passwd pinwheel >/dev/null; then
	useradd --system --gid pinwheel --home-dir /var/lib/pinwheel --no-create-home --shell /usr/sbin/nologin pinwheel
fi
# Not a directory of the package: its data stays when the package goes.
if [ ! -d /var/lib/pinwheel ]; then
	install -d -m 750 -o pinwheel -g pinwheel /var/lib/pinwheel
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	# It starts nothing that did not run: /etc/pinwheel/environment comes first.
	systemctl try-restart pinwheel.service
fi
