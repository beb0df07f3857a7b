package egress

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Client connects to servers for all workers. It checks each resolved address at the moment of connecting. So it
// refuses names that resolve to a private address, and redirects to one.
type Client struct {
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	TLS    *tls.Config // nil = the default; for tests, before the first use
	frames sync.Pool   // buffers of WebSockets that write

	mu     sync.Mutex
	owners map[string]*Connections // only owners that have connections
}

// MaxResponseHead is the largest number of bytes in the head of a response.
const MaxResponseHead = 64 << 10

// New makes a Client. allowed are private networks that it may reach. hosts are names that it connects to, whatever
// addresses they resolve to.
func New(allowed []netip.Prefix, hosts []string) *Client {
	free := &net.Dialer{Timeout: 5 * time.Second}
	guarded := &net.Dialer{
		Timeout: free.Timeout,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return checkAddress(address, allowed)
		},
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err == nil && slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
			return free.DialContext(ctx, network, address)
		}
		return guarded.DialContext(ctx, network, address)
	}
	return &Client{dial: dial, owners: map[string]*Connections{}}
}

// Close closes the idle connections.
func (f *Client) Close() {
	f.mu.Lock()
	all := slices.Collect(maps.Values(f.owners))
	f.mu.Unlock()
	for _, c := range all {
		c.transport.CloseIdleConnections()
	}
}
