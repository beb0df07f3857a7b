//go:build !linux

package machine

import "syscall"

// ofChild puts a child in a process group of its own. Only Linux can kill it when this process dies: here a child stays
// when this process is killed by SIGKILL.
func ofChild() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
