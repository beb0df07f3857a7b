package gateway

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// dialFrom connects from an address of this machine, and sends a request for path.
func dialFrom(t *testing.T, from, to, path string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", to)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	_, err = io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: "+shop+"\r\n\r\n")
	require.NoError(t, err)
	return c
}

// served reads a response whose connection stays open. It is false when the server closes it.
func served(c net.Conn) bool {
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err == nil && r.StatusCode == 200
}

// One client has a quarter of the connections. Its idle ones make room for its new ones, and the idle ones of who has
// most make room when there is none at all. A trusted proxy has no bound.
func TestConnectionsOfOneClient(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("other systems have no 127.0.0.2")
	}
	release, running := make(chan struct{}), make(chan struct{}, 16)
	g, addr := open(t, Config{Domain: "w.test", MaxConnections: 8,
		Trust: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")}}, func(e *lifecycle.Delivery) *events.Reply {
		if e.URL == "http://"+shop+"/wait" {
			running <- struct{}{}
			<-release
		}
		return &events.Reply{Status: 200, Body: []byte("ok")}
	}, func(g *Gateway) { g.times.idle = patience })
	t.Cleanup(func() { close(release) })
	closed := func(why string) float64 { return testutil.ToFloat64(g.metrics.closed.WithLabelValues(why)) }
	// A client may have its response before the server counts the connection as idle.
	idle := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			g.connections.mu.Lock()
			defer g.connections.mu.Unlock()
			return len(g.connections.idle.list) == n
		}, patience, time.Millisecond)
	}
	runs := func() {
		t.Helper()
		select {
		case <-running:
		case <-time.After(patience):
			t.Fatal("no request runs")
		}
	}

	var two []net.Conn
	for range 2 {
		two = append(two, dialFrom(t, "127.0.0.2", addr, "/"))
		require.True(t, served(two[len(two)-1]))
	}
	idle(2)
	two = append(two, dialFrom(t, "127.0.0.2", addr, "/wait"))
	runs()
	require.EqualValues(t, 1, closed(closedIdle), "an idle one of the same client")
	two = append(two, dialFrom(t, "127.0.0.2", addr, "/wait"))
	runs()
	require.EqualValues(t, 2, closed(closedIdle))
	require.False(t, served(two[0]) || served(two[1]), "they are closed")
	require.False(t, served(dialFrom(t, "127.0.0.2", addr, "/")), "its share is in use")
	require.EqualValues(t, 1, closed(closedShare))
	require.True(t, served(dialFrom(t, "127.0.0.3", addr, "/")), "another client has a share of its own")

	for range 5 { // 8 in all
		require.True(t, served(dialFrom(t, "127.0.0.9", addr, "/")), "a proxy has as many as there are")
	}
	idle(1)
	require.True(t, served(dialFrom(t, "127.0.0.4", addr, "/")), "the idle one of 127.0.0.3 makes room")
	require.EqualValues(t, []float64{1, 3}, []float64{closed(closedShare), closed(closedIdle)})
}

func TestNetworksOfClients(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.1": "192.0.2.1/32", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"fe80::1": "fe80::/64",
	} {
		require.Equal(t, want, networkOf(netip.MustParseAddr(address).Unmap()).String())
	}
	require.False(t, networkOf(netip.Addr{}).IsValid())
}
