package gateway

import (
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// TestH2Spec runs all of h2spec: what RFC 9113 and RFC 7541 say of frames, streams, headers and errors.
func TestH2Spec(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newCertificate(t, dir, 1)
	cert, err := OpenCertificate(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), zerolog.Nop())
	require.NoError(t, err)
	answer := func(*lifecycle.Delivery) *events.Reply {
		return &events.Reply{Status: 200, Headers: []string{"content-type", "text/plain"}, Body: make([]byte, 100)}
	}
	g, addr := open(t, Config{Paths: "acme", Certificate: cert}, answer,
		func(g *Gateway) { g.times.header, g.times.idle = patience, patience })
	host, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	cfg := &config.Config{Host: host, Port: number, Path: "/shop/", MaxHeaderLen: 4000, TLS: true, Insecure: true}
	// The cases that differ use up their time. On a busy machine others do too: they get more.
	cfg.Timeout = 1500 * time.Millisecond
	passed, differ, wrong := specs(cfg)
	if len(wrong) > 0 {
		t.Logf("again, with more time: %s", wrong)
		cfg.Timeout = 10 * time.Second
		passed, differ, wrong = specs(cfg)
	}
	require.Empty(t, wrong)
	require.Greater(t, passed, 140)
	require.Empty(t, differ, "these pass now")
	g.Close()
	<-g.metrics.noConnections() // net/http waits a second after an error of HTTP/2
}

// specs runs all cases, several at a time. It returns how many passed, those of otherwise that passed, and those that
// are wrong.
func specs(cfg *config.Config) (passed int, differ map[string]string, wrong []string) {
	differ = maps.Clone(otherwise)
	var running sync.WaitGroup
	room := make(chan struct{}, 8) // most cases that take long wait
	all := slices.Concat(cases(generic.Spec()), cases(http2.Spec()), cases(hpack.Spec()))
	for _, c := range all {
		running.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			c.Result = run(cfg, c)
		})
	}
	running.Wait()
	for _, c := range all {
		switch r := c.Result; {
		case !r.Failed && !r.Skipped:
			passed++
		case r.Failed && differ[c.Desc] != "":
			delete(differ, c.Desc)
		case c.Desc != race:
			wrong = append(wrong, fmt.Sprintf("%s %s: %s: %+v", c.Parent.ID(), c.Parent.Name, c.Desc, r))
		}
	}
	return passed, differ, wrong
}

// cases are those of a group and of the groups in it, except strict ones.
func cases(g *spec.TestGroup) []*spec.TestCase {
	if g.Strict {
		return nil
	}
	all := slices.Clone(g.Tests)
	for _, below := range g.Groups {
		all = append(all, cases(below)...)
	}
	return all
}

// run runs a case. TestCase.Test prints, and several cannot do so at once.
func run(cfg *config.Config, c *spec.TestCase) *spec.TestResult {
	conn, err := spec.Dial(cfg)
	if err == nil {
		defer func() { _ = conn.Close() }()
		err = c.Run(cfg, conn)
	}
	return spec.NewTestResult(c, 0, err, 0)
}

// otherwise are the cases that net/http answers in another way, which the RFC allows, or which does no harm.
var otherwise = map[string]string{
	"Sends multiple values of SETTINGS_INITIAL_WINDOW_SIZE":                                          "it closes the connection",
	"Sends a HEADERS frame that contains the connection-specific header field":                       "it answers 400 (RFC 9113 §8.1.1)",
	"Sends a HEADERS frame that contains the TE header field with any value other than \"trailers\"": "it answers 400 (RFC 9113 §8.1.1)",
}

// race is a case that fails when the response, that a GET request has no body, comes before its second WINDOW_UPDATE.
const race = "Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1 on a stream"
