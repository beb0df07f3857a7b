// Package acmetest runs pebble, the ACME server for tests by Let's Encrypt, in the process of a test.
package acmetest

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/letsencrypt/challtestsrv"
	"github.com/letsencrypt/pebble/v2/acme"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// CA is an ACME server that validates challenges at one port of 127.0.0.1, whatever the host is.
type CA struct {
	Directory string         // its URL
	RootsFile string         // certificates that sign that of the directory, PEM
	Roots     *x509.CertPool // the same
	Issuer    *x509.CertPool // signs the certificates that it issues

	accounts sync.Mutex // pebble reads an account while another request for the same key makes it

	store *db.MemoryStore

	mu      sync.Mutex
	orders  []string
	broken  bool
	limited time.Duration
	prompt  bool
}

// environment has pebble neither sleep nor reuse an authorization. It reads that from the environment of the process.
var environment = sync.OnceFunc(func() {
	for name, value := range map[string]string{"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_AUTHZREUSE": "0"} {
		_ = os.Setenv(name, value)
	}
})

// Start starts a CA that connects to tlsPort. Its certificates are valid for validity.
func Start(t testing.TB, tlsPort int, validity time.Duration) *CA {
	t.Helper()
	environment()
	quiet := log.New(io.Discard, "", 0)
	resolver := net.JoinHostPort("127.0.0.1", fmt.Sprint(natstest.FreePort(t)))
	names, err := challtestsrv.New(challtestsrv.Config{Log: quiet, DNSAddrs: []string{resolver}})
	require.NoError(t, err)
	names.SetDefaultDNSIPv6("")
	names.Run()
	t.Cleanup(names.Shutdown)
	store := db.NewMemoryStore()
	authority := ca.New(quiet, store, "", "ecdsa", 0, 1,
		map[string]ca.Profile{"default": {ValidityPeriod: uint64(validity / time.Second)}})
	front := wfe.New(quiet, store, va.New(quiet, 0, tlsPort, false, resolver, store), authority, []string{"pebble.test"},
		false, false, 0, 0)
	c := &CA{store: store, Roots: x509.NewCertPool(), Issuer: x509.NewCertPool()}
	srv := httptest.NewTLSServer(c.watch(front.Handler()))
	t.Cleanup(srv.Close)
	c.Directory = srv.URL + wfe.DirectoryPath
	c.Roots.AddCert(srv.Certificate())
	c.RootsFile = filepath.Join(t.TempDir(), "roots.pem")
	require.NoError(t,
		os.WriteFile(c.RootsFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600))
	root, err := x509.ParseCertificate(authority.GetRootCert(0).DER)
	require.NoError(t, err)
	c.Issuer.AddCert(root)
	require.Eventually(t, func() bool { // the server for names listens
		conn, err := net.Dial("tcp", resolver)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, time.Minute, time.Millisecond)
	return c
}

// watch records new orders.
func (c *CA) watch(to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		broken, limited, prompt := c.broken, c.limited, c.prompt
		c.mu.Unlock()
		if broken {
			http.Error(w, "broken", http.StatusForbidden)
			return
		}
		switch r.URL.Path {
		case "/order-plz":
			if limited > 0 {
				w.Header().Set("Retry-After", fmt.Sprint(int(limited/time.Second)))
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, `{"type":"urn:ietf:params:acme:error:rateLimited","status":429}`)
				return
			}
			c.order(w, r, to)
		case "/sign-me-up":
			c.accounts.Lock()
			defer c.accounts.Unlock()
			to.ServeHTTP(w, r)
		default:
			seen := &status{ResponseWriter: w, code: http.StatusOK}
			if to.ServeHTTP(seen, r); seen.code == http.StatusOK && prompt {
				c.awaitResult(r)
			}
		}
	})
}

// order forwards the request for an order, and records its hosts.
func (c *CA) order(w http.ResponseWriter, r *http.Request, to http.Handler) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	seen := &status{ResponseWriter: w}
	to.ServeHTTP(seen, r)
	if seen.code == http.StatusCreated { // others are repeated with a new nonce
		c.record(body)
	}
}

// awaitResult waits until a request to validate a challenge, or to issue a certificate, has its result.
func (c *CA) awaitResult(r *http.Request) {
	pending := func() bool { return false }
	if id, ok := strings.CutPrefix(r.URL.Path, "/chalZ/"); ok {
		z := c.store.GetChallengeByID(id).Authz
		pending = func() bool { z.RLock(); defer z.RUnlock(); return z.Status == acme.StatusPending }
	} else if id, ok := strings.CutPrefix(r.URL.Path, "/finalize-order/"); ok {
		o := c.store.GetOrderByID(id)
		pending = func() bool { text, err := o.GetStatus(); return err == nil && text == acme.StatusProcessing }
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for pending() && r.Context().Err() == nil {
		<-tick.C
	}
}

func (c *CA) record(body []byte) {
	var signed struct{ Payload string }
	var order struct{ Identifiers []struct{ Value string } }
	_ = json.Unmarshal(body, &signed)
	payload, _ := base64.RawURLEncoding.DecodeString(signed.Payload)
	_ = json.Unmarshal(payload, &order)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range order.Identifiers {
		c.orders = append(c.orders, i.Value)
	}
}

// Orders are the hosts of all orders so far.
func (c *CA) Orders() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.orders)
}

// Break has the CA refuse every request, or accept them again.
func (c *CA) Break(broken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = broken
}

// Limit has the CA refuse orders, and say that they may be tried again after a time; 0 = it accepts them.
func (c *CA) Limit(again time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limited = again
}

// Prompt has the CA answer only when it has validated, or issued, what it is asked for. Clients that are told to come
// again wait for a second.
func (c *CA) Prompt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prompt = true
}

type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}
