package isolates

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// RunDelays shows how long a thread waits for a processor: one that shares a processor with a thread that is never idle
// waits.
func TestRunDelay(t *testing.T) {
	require.Zero(t, runDelay(0), "no such thread")
	done := make(chan struct{})
	defer func() { <-done; <-done }()
	var enough atomic.Bool
	defer enough.Store(true)
	tids := make(chan int32)
	var one unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &one))
	for cpu := range len(one) * 64 {
		if one.IsSet(cpu) {
			one.Zero()
			one.Set(cpu)
			break
		}
	}
	for range 2 {
		go func() {
			defer func() { done <- struct{}{} }()
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			_ = unix.SchedSetaffinity(0, &one)
			tids <- int32(unix.Gettid())
			for !enough.Load() { // so it never sleeps
				continue
			}
		}()
	}
	a, b := <-tids, <-tids
	require.Eventually(t, func() bool { return runDelay(a) > 50*time.Millisecond && runDelay(b) > 50*time.Millisecond },
		patience, time.Millisecond)
}
