package e2e

import (
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var parkedEvents = regexp.MustCompile(`\npinwheel_dispatch_parked_total (\S+)`)

// A process that is suspended for a third of a second, again and again, does not treat the owner of short events as
// slow: it parks none.
func TestStarvedProcessParksNothing(t *testing.T) {
	t.Parallel()
	admin := freeAddr(t)
	l := startLoad(t, 1, admin, "PINWHEEL_CELL=shared")
	l.publish(2000)
	l.receive(2000)
	pauseLanes(t, l.js, time.Now().Add(time.Hour))
	const n = 20_000
	l.publish(n)
	before := readMetric(t, admin, parkedEvents)
	over := make(chan struct{})
	var starving sync.WaitGroup
	starving.Go(func() {
		for {
			_ = syscall.Kill(l.pid, syscall.SIGSTOP)
			time.Sleep(2 * consumerStuckAfter) // this is the fault
			_ = syscall.Kill(l.pid, syscall.SIGCONT)
			select {
			case <-over:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	pauseLanes(t, l.js, time.Time{})
	l.receive(n)
	close(over)
	starving.Wait()
	require.Equal(t, before, readMetric(t, admin, parkedEvents))
}

// consumerStuckAfter is consumer.stuckAfter.
const consumerStuckAfter = 300 * time.Millisecond
