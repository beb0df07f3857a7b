//go:build !linux

package modulecheck

import "syscall"

// ofProcess keeps signals of a terminal from a process.
func ofProcess() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// endsFirst does nothing.
func endsFirst(int) {}
