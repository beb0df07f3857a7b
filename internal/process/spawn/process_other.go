//go:build !linux

package spawn

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// ofProcess keeps signals of a terminal from a process.
func ofProcess() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// lower lets processes of the fleet come before those of a check.
func lower(k kind, pid int) {
	if k == check {
		_ = unix.Setpriority(unix.PRIO_PROCESS, pid, niceness)
	}
}
