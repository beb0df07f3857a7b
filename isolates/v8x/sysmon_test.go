package v8x

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const prGetTimerSlack = 30 // PR_GET_TIMERSLACK

// slackOfThread returns the timer slack of the calling thread.
func slackOfThread(t *testing.T) time.Duration {
	t.Helper()
	ns, _, errno := syscall.Syscall(syscall.SYS_PRCTL, prGetTimerSlack, 0, 0)
	require.Zero(t, errno)
	return time.Duration(ns)
}

func TestSysmonMayBeLate(t *testing.T) {
	tid, slack := Sysmon()
	require.NotZero(t, tid)
	require.Equal(t, SysmonSlack, slack)
	// It is sysmon: it only sleeps, and not until others wake it while a goroutine computes.
	calls := map[string]int{}
	nap, known := fmt.Sprint(syscall.SYS_NANOSLEEP), []string{"running", fmt.Sprint(syscall.SYS_NANOSLEEP), fmt.Sprint(syscall.SYS_FUTEX)}
	for range 100_000 {
		text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/syscall", tid))
		require.NoError(t, err)
		call, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
		require.Contains(t, known, call)
		if calls[call]++; calls[nap] == 3 {
			return
		}
	}
	require.Fail(t, "it never slept", "%v", calls)
}

// Threads inherit the slack of the thread that starts them, and sysmon starts some.
func TestOtherThreadsAreNotLate(t *testing.T) {
	const threads = 20
	var slacks sync.Map
	var all, done sync.WaitGroup
	all.Add(threads)
	for range threads {
		done.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			slacks.Store(syscall.Gettid(), slackOfThread(t))
			all.Done()
			all.Wait() // so that each goroutine has a thread
		})
	}
	done.Wait()
	n := 0
	for tid, slack := range slacks.Range {
		n++
		require.Less(t, slack, SysmonSlack, "thread %v", tid)
	}
	require.Equal(t, threads, n)
}
