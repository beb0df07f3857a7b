package machine

import "syscall"

// ofChild puts a child in a process group of its own, and has the kernel kill it when this process dies.
func ofChild() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
