package gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/pinwheel-run/pinwheel/internal/test/testcert"
)

// newCertificate writes a certificate for shop, signed by itself, and returns it.
func newCertificate(t *testing.T, dir string, serial int64) *x509.Certificate {
	t.Helper()
	return testcert.Write(t, dir, shop, serial)
}

// openTLS opens a gateway with a certificate in dir, and a client of HTTP/2 that trusts the certificates given.
func openTLS(t *testing.T, dir string, h handler, trusted ...*x509.Certificate) (*Gateway, *http.Client) {
	t.Helper()
	cert, err := OpenCertificate(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"),
		zerolog.New(zerolog.NewTestWriter(t)))
	require.NoError(t, err)
	cert.look = 0
	cfg := domain
	cfg.Certificate = cert
	g, addr := open(t, cfg, h, func(g *Gateway) { g.times.header, g.times.idle = patience, patience })
	pool := x509.NewCertPool()
	for _, c := range trusted {
		pool.AddCert(c)
	}
	transport := &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return g, &http.Client{Transport: transport}
}

func TestHTTP2(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert := newCertificate(t, dir, 1)
	var s seen
	_, client := openTLS(t, dir, s.handle, cert)
	resp, err := client.Get("https://" + shop + "/a?b=1")
	require.NoError(t, err)
	require.Equal(t, []any{"HTTP/2.0", 200, "ok"}, []any{resp.Proto, resp.StatusCode, text(t, resp)})
	require.Equal(t, "https://"+shop+"/a?b=1", s.take()[0].URL)

	// Many requests on one connection, with bodies both ways.
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			resp, err := client.Post("https://"+shop+"/", "text/plain", strings.NewReader(strings.Repeat("x", i)))
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = resp.Body.Close() }()
			if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "ok" {
				t.Error(i, string(b), err)
			}
		})
	}
	all.Wait()
	sizes := map[int]bool{}
	for _, e := range s.take() {
		sizes[len(e.Body)] = true
	}
	require.Len(t, sizes, 300)

	resp, err = client.Do(&http.Request{Method: "GET", URL: resp.Request.URL,
		Header: http.Header{"X": {strings.Repeat("x", 9000)}}})
	require.NoError(t, err)
	require.Equal(t, 431, resp.StatusCode)
	_ = resp.Body.Close()
}

// net/http parses the path of an encrypted request with net/url, which refuses a % that escapes nothing. The gateway
// sees no byte of it before: net/http makes the tls.Conn, and in HTTP/2 the path is compressed. A TLS handshake in the
// gateway's own listener would help HTTP/1.1 alone. This test shows what clients get, and fails when a version of
// net/http takes such a path.
func TestPercentOverTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert := newCertificate(t, dir, 1)
	var s seen
	_, client := openTLS(t, dir, s.handle, cert)
	transport := client.Transport.(*http.Transport)
	connect := func(protocol string) *tls.Conn {
		raw, err := transport.DialContext(t.Context(), "tcp", "")
		require.NoError(t, err)
		t.Cleanup(func() { _ = raw.Close() })
		require.NoError(t, raw.SetDeadline(time.Now().Add(patience)))
		return tls.Client(raw, &tls.Config{RootCAs: transport.TLSClientConfig.RootCAs, ServerName: shop,
			NextProtos: []string{protocol}})
	}
	conn := connect("http/1.1")
	_, err := io.WriteString(conn, "GET /100% HTTP/1.1\r\nHost: "+shop+"\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, 400, resp.StatusCode)
	require.NoError(t, resp.Body.Close())

	conn = connect("h2")
	_, err = io.WriteString(conn, http2.ClientPreface)
	require.NoError(t, err)
	frames := http2.NewFramer(conn, conn)
	require.NoError(t, frames.WriteSettings())
	var block bytes.Buffer
	fields := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", shop}, {":path", "/100%"}} {
		require.NoError(t, fields.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
	}
	require.NoError(t, frames.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(),
		EndStream: true, EndHeaders: true}))
	for {
		frame, err := frames.ReadFrame()
		require.NoError(t, err)
		if reset, ok := frame.(*http2.RSTStreamFrame); ok {
			require.Equal(t, http2.ErrCodeProtocol, reset.ErrCode)
			break
		}
	}
	require.Empty(t, s.take())
}

// A certificate that was written again is used for new connections. While the two files do not fit, the one before is.
func TestCertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := newCertificate(t, dir, 1)
	spare := t.TempDir()
	second := newCertificate(t, spare, 2)
	var s seen
	_, client := openTLS(t, dir, s.handle, first, second)
	serial := func() int64 {
		client.CloseIdleConnections()
		resp, err := client.Get("https://" + shop + "/")
		require.NoError(t, err)
		_ = resp.Body.Close()
		return resp.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	require.EqualValues(t, 1, serial())
	copyFile := func(name string) {
		data, err := os.ReadFile(filepath.Join(spare, name))
		require.NoError(t, err)
		data = append(data, '\n') // another size, whatever the clock of the file system says
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	copyFile("cert.pem")
	require.EqualValues(t, 1, serial(), "the key is still that of the first")
	copyFile("key.pem")
	require.EqualValues(t, 2, serial())
	require.NoError(t, os.Remove(filepath.Join(dir, "key.pem")))
	require.EqualValues(t, 2, serial())

	_, err := OpenCertificate(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), zerolog.Nop())
	require.ErrorContains(t, err, "certificate for HTTP: ")
}

// A body that is too large ends its own stream of HTTP/2. The other requests of the connection go on.
func TestHTTP2BodyThatIsTooLarge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert := newCertificate(t, dir, 1)
	var s seen
	_, client := openTLS(t, dir, s.handle, cert)
	for range 3 {
		reused := false
		trace := httptrace.WithClientTrace(t.Context(),
			&httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
		r, err := http.NewRequestWithContext(trace, http.MethodPost, "https://"+shop+"/", counting{})
		require.NoError(t, err)
		r.ContentLength = 2 << 30
		resp, err := client.Do(r)
		require.NoError(t, err)
		require.Equal(t, []any{413, "the body is larger than 1073741824 bytes\n"}, []any{resp.StatusCode, text(t, resp)})
		resp, err = client.Do((&http.Request{Method: "GET", URL: r.URL}).WithContext(trace))
		require.NoError(t, err)
		require.Equal(t, []any{200, "ok", true}, []any{resp.StatusCode, text(t, resp), reused})
	}
}

// Plain text on the port for TLS, and old versions of TLS, get no event.
func TestOnlyTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert := newCertificate(t, dir, 1)
	var s seen
	_, client := openTLS(t, dir, s.handle, cert)
	transport, ok := client.Transport.(*http.Transport)
	require.True(t, ok)
	c, err := transport.DialContext(t.Context(), "tcp", "")
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	_, err = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", shop)
	require.NoError(t, err)
	answer, _ := io.ReadAll(c)
	require.True(t, bytes.HasPrefix(answer, []byte("HTTP/1.0 400 ")), "%q", answer)
	old := transport.Clone()
	old.TLSClientConfig.MaxVersion = tls.VersionTLS11
	_, err = (&http.Client{Transport: old}).Get("https://" + shop + "/")
	require.Error(t, err)
	require.Empty(t, s.take())
}
