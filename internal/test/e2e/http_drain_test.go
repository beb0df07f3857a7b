package e2e

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/internal/test/testcert"
)

const longDrain = "PINWHEEL_DRAIN_TIMEOUT=2m" // on a loaded machine too

// telling is a worker that says which requests it has, and answers after a while.
const telling = `export default { async fetch(request) {
	const id = await request.text();
	console.log(id);
	await new Promise((done) => setTimeout(done, 20));
	return new Response("did " + id);
} }`

// over runs requests on 8 connections of HTTP/1.1, or 8 at once of HTTP/2, until end ends the server. Each that ran
// must have its answer.
func (f *flow) over(h *testFleet, end func()) {
	h.t.Helper()
	h.deploy("acme", "w", telling)
	var mu sync.Mutex
	ran := map[string]bool{}
	_, err := h.nc.Subscribe("pinwheel.logs.acme.w", func(m *nats.Msg) {
		var line events.LogLine
		if json.Unmarshal(m.Data, &line) == nil && line.Level == "info" {
			mu.Lock()
			ran[line.Text] = true
			mu.Unlock()
		}
	})
	require.NoError(h.t, err)
	require.NoError(h.t, h.nc.Flush())
	f.strict = true
	f.begin(8)
	require.Eventually(h.t, func() bool { return f.count.Load() > 200 || h.t.Failed() }, patience, time.Millisecond)
	end()
	f.running.Wait()
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(h.t, ran)
	for id := range ran {
		_, ok := f.answered.Load(id)
		require.True(h.t, ok, "request %s ran, and its client got no answer", id)
	}
}

// certified writes a certificate for acme/w, and returns it with the variables of a process that has it.
func certified(t *testing.T) (*x509.Certificate, []string) {
	dir := t.TempDir()
	cert := testcert.Write(t, dir, "w--acme.w.test", 1)
	return cert, []string{"PINWHEEL_HTTP_CERT=" + filepath.Join(dir, "cert.pem"), "PINWHEEL_HTTP_KEY=" + filepath.Join(dir,
		"key.pem")}
}

// trust has w speak TLS, in HTTP/2 or in HTTP/1.1.
func (w *web) trust(cert *x509.Certificate, http2 bool) *web {
	tr := w.client.Transport.(*http.Transport)
	tr.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
	tr.TLSClientConfig.RootCAs.AddCert(cert)
	if tr.ForceAttemptHTTP2 = http2; !http2 {
		tr.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return w
}

// A process that gets SIGTERM answers each request that it has taken, and then accepts none.
func TestDrainCutsNoRequest(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	p, addr := startWeb(t, srv.URL(), longDrain)
	h := &testFleet{t: t}
	h.connect(srv.URL())
	f := &flow{web: openWeb(t, addr)}
	f.over(h, func() { p.Signal(syscall.SIGTERM) })
}

func TestDrainCutsNoRequestOfHTTP2(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	cert, env := certified(t)
	p, addr := startWeb(t, srv.URL(), append(env, longDrain)...)
	h := &testFleet{t: t}
	h.connect(srv.URL())
	f := &flow{web: openWeb(t, addr).trust(cert, true), scheme: "https"}
	f.over(h, func() {
		resp, err := f.web.client.Post("https://w--acme.w.test/", "text/plain", strings.NewReader("first"))
		require.NoError(t, err)
		f.answered.Store("first", true)
		require.Equal(t, "HTTP/2.0", resp.Proto)
		require.NoError(t, resp.Body.Close())
		p.Signal(syscall.SIGTERM)
	})
}

// A supervisor passes SIGTERM on. Its processes share a socket, and each answers what it has taken.
func TestSupervisedDrainCutsNoRequest(t *testing.T) {
	t.Parallel()
	addr := fmt.Sprintf("127.0.0.1:%d", natstest.FreePort(t))
	srv := natstest.Start(t)
	s := supervise(t, "PINWHEEL_NATS_URL="+srv.URL(), "PINWHEEL_HTTP_ADDR="+addr, "PINWHEEL_HTTP_DOMAIN=w.test",
		"PINWHEEL_HTTP_LOG=false", longDrain)
	h := &testFleet{t: t}
	h.connect(srv.URL())
	f := &flow{web: openWeb(t, addr), reopens: true}
	f.over(h, func() {
		require.Eventually(t, func() bool {
			all := s.stats().Processes
			return all[0].Running > 0 && all[1].Running > 0
		}, patience, time.Millisecond, "both have requests")
		s.Signal(syscall.SIGTERM)
	})
	require.NoError(t, s.Wait())
}

// Bodies that are under way both ways when a process gets SIGTERM go on to their end.
func TestDrainCutsNoBody(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	cert, env := certified(t)
	p, addr := startWeb(t, srv.URL(), append(env, longDrain)...)
	h := &testFleet{t: t}
	h.connect(srv.URL())
	h.deploy("acme", "w", `export default { fetch: (request) => new Response(request.body) }`, `{"limits": {"cpuMs": 60000, "wallMs": 300000}}`)
	var all []*echoed
	for i := range 8 {
		e := &echoed{T: t, web: openWeb(t, addr).trust(cert, i%2 == 0), seed: byte(i)}
		e.begin()
		all = append(all, e)
	}
	p.Signal(syscall.SIGTERM)
	require.Eventually(t, func() bool { // it accepts nothing more
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	}, patience, time.Millisecond)
	var ending sync.WaitGroup
	for _, e := range all {
		ending.Go(e.end)
	}
	ending.Wait()
	require.NoError(t, p.Wait())
}

// echoed is a body that comes back while it is sent.
type echoed struct {
	*testing.T
	web  *web
	seed byte

	up   *io.PipeWriter
	down io.ReadCloser
	all  io.Reader // what is sent
}

// firstPart is what has come back of each body before the process is told to end.
const firstPart, wholeEcho = 100_000, 8 << 20

func (e *echoed) begin() {
	from, up := io.Pipe()
	e.up, e.all = up, io.LimitReader(rand.NewChaCha8([32]byte{e.seed}), wholeEcho)
	sent := make(chan error, 1)
	go func() {
		_, err := io.CopyN(up, e.all, firstPart)
		sent <- err
	}()
	resp, err := e.web.client.Post("https://w--acme.w.test/", "application/octet-stream", from)
	require.NoError(e, err)
	require.Equal(e, []any{200, 2 - int(e.seed)%2}, []any{resp.StatusCode, resp.ProtoMajor})
	e.down = resp.Body
	first := make([]byte, firstPart)
	_, err = io.ReadFull(e.down, first)
	require.NoError(e, err)
	require.NoError(e, <-sent)
	want := make([]byte, firstPart)
	_, _ = io.ReadFull(rand.NewChaCha8([32]byte{e.seed}), want)
	require.True(e, bytes.Equal(want, first))
}

// end sends the rest, and compares what comes back.
func (e *echoed) end() {
	sent, came := sha256.New(), sha256.New()
	over := make(chan error, 1)
	go func() {
		_, err := io.Copy(e.up, io.TeeReader(e.all, sent))
		over <- errors.Join(err, e.up.Close())
	}()
	n, err := io.Copy(came, e.down)
	if err != nil || n != wholeEcho-firstPart {
		e.Errorf("body %d: %d bytes came back, %v", e.seed, n, err)
	}
	if err := <-over; err != nil || !bytes.Equal(sent.Sum(nil), came.Sum(nil)) {
		e.Errorf("body %d: other bytes came back, %v", e.seed, err)
	}
}
