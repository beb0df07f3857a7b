package v8x

// #include "v8x.h"
import "C"

import "time"

// SysmonSlack is how late the kernel may wake Go's sysmon thread.
const SysmonSlack = C.V8X_SYSMON_SLACK * time.Nanosecond

// Sysmon returns the thread ID of Go's sysmon thread, 0 before it has run, and how late the kernel may wake it. It is
// for tests.
func Sysmon() (tid int, slack time.Duration) {
	var ns C.ulong
	tid = int(C.v8x_sysmon(&ns))
	return tid, time.Duration(ns)
}
