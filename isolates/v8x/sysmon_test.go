package v8x

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const getTimerSlack = 30 // PR_GET_TIMERSLACK

func TestSysmonMayBeLate(t *testing.T) {
	require.Eventually(t, func() bool { tid, _ := Sysmon(); return tid != 0 }, time.Minute, time.Millisecond)
	tid, slack := Sysmon()
	require.Equal(t, SysmonSlack, slack)
	// It is sysmon: it only sleeps, and not until others wake it while a goroutine computes.
	calls := map[string]int{}
	nap := fmt.Sprint(syscall.SYS_NANOSLEEP)
	known := []string{"running", nap, fmt.Sprint(syscall.SYS_FUTEX)}
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

// A thread inherits the slack of the thread that starts it. When goroutines block in system calls, sysmon starts
// threads for the others.
func TestOtherThreadsAreNotLate(t *testing.T) {
	const threads = 50
	var ends [2]int
	require.NoError(t, syscall.Pipe(ends[:]))
	slacks := make(chan uintptr, threads)
	var blocked sync.WaitGroup
	for range threads {
		blocked.Go(func() {
			slack, _, _ := syscall.Syscall(syscall.SYS_PRCTL, getTimerSlack, 0, 0)
			slacks <- slack
			_, _ = syscall.Read(ends[0], make([]byte, 1)) // until the pipe is closed
		})
	}
	for range threads {
		require.Less(t, time.Duration(<-slacks), SysmonSlack)
	}
	require.NoError(t, syscall.Close(ends[1]))
	blocked.Wait()
	require.NoError(t, syscall.Close(ends[0]))
}
