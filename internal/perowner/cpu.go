package perowner

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// CPU calls do on a thread of its own, and returns the CPU time that the thread used meanwhile. Time of goroutines that
// do starts does not count, nor the time for which do waits.
func CPU(do func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	do()
	return threadTime() - began
}

func threadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
