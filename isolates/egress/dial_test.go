package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func sayOK(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

// A Client with a Dial of its process connects by it, for the owner of the request, and passes its words on.
func TestClientDialsByItsProcess(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(sayOK))
	t.Cleanup(s.Close)
	f := New(nil, nil) // its own guard refuses the server
	t.Cleanup(f.Close)
	f.Dial = func(ctx context.Context, owner, network, address string) (net.Conn, error) {
		require.Equal(t, "tcp", network)
		if owner != "acme" {
			return nil, Told{Text: owner + " may not reach " + address}
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	require.Equal(t, "ok", f.ask(t.Context(), t, "acme", s.URL))
	conns := f.Of("beta")
	defer conns.Release()
	err := conns.Exchange(t.Context(), Request{Method: "GET", URL: s.URL}, nil)
	require.EqualError(t, err, "beta may not reach "+s.Listener.Addr().String())
	_, _, err = conns.Upgrade(t.Context(), "ws"+s.URL[len("http"):], nil)
	require.EqualError(t, err, "beta may not reach "+s.Listener.Addr().String())
}

// Connections dial for another process under their guard, in words for the author of a handler, and count what they
// have open.
func TestConnectionsDial(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	f := requester(t, s)
	c := f.Of("acme")
	defer c.Release()
	conn, err := c.Dial(t.Context(), "tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	require.Len(t, c.places, 1)
	require.NoError(t, conn.Close())
	require.Empty(t, c.places)
	_, err = c.Dial(t.Context(), "tcp", "10.0.0.1:80")
	told, ok := errors.AsType[Told](err)
	require.True(t, ok)
	require.Contains(t, told.Error(), "10.0.0.1:80: address is not allowed")
}

// A Client accepts the authorities that it was given, and no others.
func TestClientTrusts(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(sayOK))
	t.Cleanup(s.Close)
	known := x509.NewCertPool()
	known.AddCert(s.Certificate())
	for authorities, want := range map[*x509.CertPool]string{known: "ok", x509.NewCertPool(): "x509"} {
		f := New(nil, []string{"127.0.0.1"})
		f.Trust(authorities)
		require.Contains(t, f.ask(t.Context(), t, "acme", s.URL), want)
		f.Close()
	}
	f := New(nil, nil)
	f.Trust(nil)
	require.Nil(t, f.TLS)
	system, err := AuthoritiesPEM()
	require.NoError(t, err)
	require.NotEmpty(t, system)
}
