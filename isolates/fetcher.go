package isolates

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
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
	transport *http.Transport
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	tls       *tls.Config // of WebSockets; nil = the usual
	frames    sync.Pool   // buffers of WebSockets that write
}

const (
	maxRedirects    = 20 // Fetch standard §4.4
	maxConnsPerHost = 64
)

var errAddress = errors.New("address is not allowed: it is private, link-local, loopback or reserved")

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
	return &fetcher{dial: dial, transport: &http.Transport{
		DialContext: dial, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns: 256, MaxIdleConnsPerHost: 8, MaxConnsPerHost: maxConnsPerHost, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}}
}

// checkAddress refuses what is not a public address, unless it is allowed by configuration.
func checkAddress(address string, allowed []netip.Prefix) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w (%s)", errAddress, address)
	}
	ip := ap.Addr().Unmap().WithZone("")
	for _, p := range allowed {
		if p.Contains(ip) {
			return nil
		}
	}
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || inSpecial(ip) {
		return errAddress
	}
	return nil
}

// special are the networks of the IANA special-purpose registries that netip has no name for.
var special = func() []netip.Prefix {
	list := []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16",
	}
	prefixes := make([]netip.Prefix, len(list))
	for i, s := range list {
		prefixes[i] = netip.MustParsePrefix(s)
	}
	return prefixes
}()

func inSpecial(ip netip.Addr) bool {
	for _, p := range special {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// do sends the request. mode is the Fetch standard's redirect mode. redirected tells whether the
// response is another URL's.
func (f *fetcher) do(r *http.Request, mode string) (resp *http.Response, redirected bool, err error) {
	client := http.Client{Transport: f.transport, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
		switch {
		case mode == "error":
			return errors.New("the response is a redirect, and redirect is \"error\"")
		case mode == "manual":
			return http.ErrUseLastResponse
		case len(via) >= maxRedirects:
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		redirected = true
		return nil
	}}
	resp, err = client.Do(r)
	return resp, redirected, err
}

func (f *fetcher) close() { f.transport.CloseIdleConnections() }
