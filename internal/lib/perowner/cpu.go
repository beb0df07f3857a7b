package perowner

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// CPU calls do on a thread of its own, and returns the CPU time that the thread used meanwhile. Time of goroutines that
// do starts does not count, nor the time for which do waits.
func CPU(do func()) (used time.Duration) {
	Metered(func(lap func() time.Duration) {
		do()
		used = lap()
	})
	return used
}

// Metered does what CPU does, for work that asks meanwhile how much it has used: lap returns the CPU time since it was
// called before, or since the beginning. Only the goroutine of do may call it.
func Metered(do func(lap func() time.Duration)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	last := ThreadTime()
	do(func() time.Duration {
		used := ThreadTime() - last
		last += used
		return used
	})
}

// ThreadTime returns the CPU time that the calling thread has used.
func ThreadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
