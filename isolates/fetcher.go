package isolates

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

// fetcher does the subrequests of all workers. What it may connect to is checked at the moment of
// connecting, on the resolved address: neither a name that resolves to a private address nor a redirect
// to one gets through.
type fetcher struct {
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	tls    *tls.Config // nil = the usual
	frames sync.Pool   // buffers of WebSockets that write

	mu     sync.Mutex
	owners map[string]*connections // of owners that have some
}

const (
	maxRedirects    = 20       // Fetch standard §4.4; 64_redirect.js counts them
	maxResponseHead = 64 << 10 // bytes
)

func newFetcher(allowed []netip.Prefix, hosts []string) *fetcher {
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
	return &fetcher{dial: dial, owners: map[string]*connections{}}
}

func (f *fetcher) close() {
	f.mu.Lock()
	all := slices.Collect(maps.Values(f.owners))
	f.mu.Unlock()
	for _, c := range all {
		c.transport.CloseIdleConnections()
	}
}
