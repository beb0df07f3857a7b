package isolates

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// idleSource never has any work.
type idleSource struct{ alone }

func (idleSource) Next(int, int) []*lifecycle.Attempt { return nil }
func (idleSource) Report(int, []lifecycle.Report)     {}

func TestBackgroundThreadsHaveLowerPriority(t *testing.T) {
	p, err := New(func() Config { c := DefaultConfig(2); c.Background = 2; return c }(), idleSource{}, nil)
	require.NoError(t, err)
	priority := func(tid int) int {
		n, err := unix.Getpriority(unix.PRIO_PROCESS, tid)
		require.NoError(t, err)
		return 20 - n // the value that the system call returns
	}
	require.NoError(t, p.Open())
	defer p.Close()
	var nice []int
	for i := range p.threads {
		w := p.threads[i].Load().watch
		require.Eventually(t, func() bool { return w.pinned() != 0 }, patience, time.Millisecond)
		want := processNice
		if i >= 2 {
			want = min(19, processNice+backgroundNice)
		}
		require.Eventually(t, func() bool { return priority(w.pinned()) == want }, patience, time.Millisecond)
		nice = append(nice, priority(w.pinned()))
		if i >= 2 {
			require.Eventually(t, func() bool {
				attr, err := unix.SchedGetAttr(w.pinned(), 0)
				return err == nil && attr.Policy == unix.SCHED_BATCH
			}, patience, time.Millisecond)
		}
	}
	require.Less(t, nice[1], nice[2])
}

func TestIsolatesOfThreads(t *testing.T) {
	for _, k := range []struct{ all, threads, background, each, behind int }{
		{500, 2, 0, 249, 0}, {500, 2, 2, 218, 31}, {500, 16, 4, 27, 15}, {8, 2, 2, 2, 1}, {5, 2, 2, 1, 1}, {4, 2, 2, 1, 1},
	} {
		c := DefaultConfig(k.threads)
		c.MaxIsolates, c.Background = k.all, k.background
		require.NoError(t, c.Validate())
		sum := c.prewarmed()
		for i := range k.threads + k.background {
			n := c.maxIsolatesOf(i)
			if i >= k.threads {
				require.Equal(t, k.behind, n, "%+v", k)
			} else {
				require.Contains(t, []int{k.each, k.each + 1}, n, "%+v", k)
			}
			sum += n
		}
		require.Equal(t, k.all, sum, "%+v", k)
	}
}
