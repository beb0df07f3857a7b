#!/bin/sh
# After the package was removed. /var/lib/pinwheel and the user that owns it stay.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
