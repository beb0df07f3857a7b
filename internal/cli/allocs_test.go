package cli

import (
	"io"
	"math"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// mostAllocs is how many allocations of Go's an event may cost the process of the fleet, all of them counted: what nats.go makes of a
// message, too, and what is shared by events that come together. 20 to 21 were measured, with six busy loops beside it as well.
const mostAllocs = 30.0

var mallocs = regexp.MustCompile(`\ngo_memstats_mallocs_total (\S+)`)

// Garbage is a good part of what an event costs, and grows by a line here and there that no measurement of time on a busy machine
// would show. The number is in docs/performance.md.
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
	// What events that come together share depends on how fast they come, so on what else the machine does. The best of some rounds counts.
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

// readMetric is the value of a metric that a process at admin has. name finds it, and has the value in brackets.
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

// freeAddr is an address at which nobody listens.
func freeAddr(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
