package spawn

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// ofProcess keeps signals of a terminal from a process, and has the kernel kill it when the process dies that has
// started it.
func ofProcess() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// endsFirst has the kernel end a process before processes of the fleet when memory runs out.
func endsFirst(pid int) {
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("1000"), 0)
}

// lower lets processes of the fleet come before a process: when memory runs out, and before that of a check at the
// processors.
func lower(k kind, pid int) {
	if k == check {
		_ = unix.Setpriority(unix.PRIO_PROCESS, pid, niceness)
	}
	endsFirst(pid)
}
