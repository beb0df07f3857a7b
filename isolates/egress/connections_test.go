package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// requester returns a Client for a test's server.
func requester(t *testing.T, s *httptest.Server) *Client {
	f := New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, nil)
	if s.Certificate() != nil {
		pool := x509.NewCertPool()
		pool.AddCert(s.Certificate())
		f.TLS = &tls.Config{RootCAs: pool}
	}
	t.Cleanup(f.Close)
	return f
}

// ask does a request of an owner and returns the body.
func (f *Client) ask(ctx context.Context, t *testing.T, owner, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	c := f.Of(owner)
	defer c.Release()
	resp, err := c.transport.RoundTrip(r)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

// An owner that uses all its connections to a host waits only for itself.
func TestConnectionsAreShared(t *testing.T) {
	arrived := make(chan struct{}, 2*maxConnsPerHost)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			arrived <- struct{}{}
			<-r.Context().Done()
		}
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(s.Close)
	f := requester(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan string)
	for range maxConnsPerHost + 10 {
		go func() { done <- f.ask(ctx, t, "acme", s.URL+"/hold") }()
	}
	for range maxConnsPerHost {
		<-arrived
	}
	require.Equal(t, "ok", f.ask(t.Context(), t, "beta", s.URL))
	require.Empty(t, arrived, "acme has no more than its share")
	cancel()
	for range maxConnsPerHost + 10 {
		<-done
	}
}

// No owner uses a connection of another, idle or not, over HTTP/1 and 2. No TLS session is resumed for another owner.
func TestConnectionsAreOfOneOwner(t *testing.T) {
	for _, secure := range []bool{false, true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.TLS != nil && r.TLS.DidResume {
				_, _ = io.WriteString(w, "resumed ")
			}
			_, _ = io.WriteString(w, r.Proto+" "+r.RemoteAddr)
		}))
		if secure {
			s.EnableHTTP2 = true
			s.StartTLS()
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
		f := requester(t, s)
		first := f.ask(t.Context(), t, "acme", s.URL)
		require.Equal(t, first, f.ask(t.Context(), t, "acme", s.URL), "its own is used again")
		other := f.ask(t.Context(), t, "beta", s.URL)
		require.NotEqual(t, first, other)
		require.Equal(t, other, f.ask(t.Context(), t, "beta", s.URL))
		require.NotContains(t, first+other, "resumed")
		if secure {
			require.Contains(t, first, "HTTP/2.0")
		}
		f.Close()
		require.Eventually(t, func() bool { f.mu.Lock(); defer f.mu.Unlock(); return len(f.owners) == 0 }, time.Minute,
			time.Millisecond, "unused connections are forgotten")
	}
}

// An owner has a bounded number of connections to all hosts together. Idle ones make room.
func TestConnectionsOfAnOwnerAreBounded(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = io.WriteString(w, "ok")
	}))
	t.Cleanup(s.Close)
	f := requester(t, s)
	require.Equal(t, "ok", f.ask(t.Context(), t, "acme", s.URL)) // leaves an idle connection
	c := f.Of("acme")
	defer c.Release()
	for range maxConns - 1 {
		c.places <- struct{}{}
	}
	raw, err := c.dial(t.Context(), "tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.dial(ctx, "tcp", s.Listener.Addr().String())
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, raw.Close())
	_ = raw.Close()
	require.Len(t, c.places, maxConns-1)
}
