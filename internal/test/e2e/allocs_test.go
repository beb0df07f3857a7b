package e2e

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// mostAllocs is how many Go allocations an event may cost the process of the fleet. All are counted, including those
// that nats.go makes for a message and those that events share when they come together. 20 to 21 were measured, also
// with six busy loops beside it.
const mostAllocs = 30.0

var mallocs = regexp.MustCompile(`\ngo_memstats_mallocs_total (\S+)`)

// Garbage collection is a large part of the cost of an event. It can grow with small changes that no time measurement
// on a busy machine would show. The number is in docs/development/performance.md.
func TestAllocationsOfAnEvent(t *testing.T) {
	if testing.Short() {
		t.Skip("120 000 events at most")
	}
	const n, rounds = 10_000, 12
	admin := freeAddr(t)
	l := startLoad(t, 1, admin)
	read := func() float64 { return readMetric(t, admin, mallocs) }
	l.publish(2000)
	l.receive(2000)
	// The allocations that events share depend on how fast the events come, and so on the load of the machine. The best
	// of several rounds counts.
	best := math.Inf(1)
	for range rounds {
		before := read()
		l.publish(n)
		l.receive(n)
		if best = min(best, (read()-before)/n); best < mostAllocs {
			break
		}
	}
	t.Logf("%.1f allocations per event", best)
	require.Less(t, best, mostAllocs)
}

// readMetric returns the value of a metric of the process at admin. name matches the metric, with the value in a group.
func readMetric(t *testing.T, admin string, name *regexp.Regexp) float64 {
	t.Helper()
	r, err := http.Get("http://" + admin + "/metrics")
	require.NoError(t, err)
	defer r.Body.Close()
	page, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	found := name.FindSubmatch(page)
	require.NotNil(t, found)
	value, err := strconv.ParseFloat(string(found[1]), 64)
	require.NoError(t, err)
	return value
}

// freeAddr returns an address at which no process listens.
func freeAddr(t *testing.T) string { return fmt.Sprintf("127.0.0.1:%d", natstest.FreePort(t)) }
