//go:build !linux

package supervisor

import "syscall"

// ofChild puts a child in a process group of its own. Only Linux can kill it when the supervisor dies: here a child
// stays when the supervisor is killed by SIGKILL.
func ofChild() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
