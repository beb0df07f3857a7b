package cli

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// mostAllocs is how many allocations of Go's an event may cost the process of the fleet, all of them counted: what nats.go makes of a
// message, too, and what is shared by events that come together.
const mostAllocs = 27.0

var mallocs = regexp.MustCompile(`# Mallocs = (\d+)`)

// Garbage is a good part of what an event costs, and grows by a line here and there that no measurement of time on a busy machine
// would show. The number is in docs/performance.md.
func TestAllocationsOfAnEvent(t *testing.T) {
	if testing.Short() {
		t.Skip("20 000 events")
	}
	const n = 20_000
	admin := freeAddr(t)
	l := startLoad(t, 1, admin)
	read := func() int {
		r, err := http.Get("http://" + admin + "/debug/pprof/allocs?debug=1")
		require.NoError(t, err)
		defer r.Body.Close()
		page, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		found := mallocs.FindSubmatch(page)
		require.NotNil(t, found)
		count, err := strconv.Atoi(string(found[1]))
		require.NoError(t, err)
		return count
	}
	l.publish(2000)
	l.receive(2000)
	before := read()
	l.publish(n)
	l.receive(n)
	each := float64(read()-before) / n
	t.Logf("%.1f allocations per event", each)
	require.Less(t, each, mostAllocs)
}

// freeAddr is an address at which nobody listens.
func freeAddr(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
