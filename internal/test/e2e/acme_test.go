package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/http/certificates"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
	"github.com/pinwheel-run/pinwheel/internal/test/acmetest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

const ninetyDays = 90 * 24 * time.Hour

// secure asks a host at addr over TLS, with a connection of its own. It returns the body and the certificate's serial
// number.
func secure(ca *acmetest.CA, addr, host string) (body, serial string, err error) {
	tr := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		},
		TLSClientConfig: &tls.Config{RootCAs: ca.Issuer}, ForceAttemptHTTP2: true,
	}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr, Timeout: patience}).Get("https://" + host + "/")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s %s", resp.StatusCode, resp.Proto, text), resp.TLS.PeerCertificates[0].SerialNumber.String(),
		err
}

// Two processes under deploy/nats/users.conf: one orders the certificates of hosts that the fleet serves, the CA asks
// the other one, and both serve them. Hosts that nobody has, hosts of versions and hosts that are not granted any more
// get none.
func TestACME(t *testing.T) {
	t.Parallel()
	url := natstest.StartConfigured(t, "../../../deploy/nats/users.conf")
	port := natstest.FreePort(t)
	ca := acmetest.Start(t, port, ninetyDays)
	key, _ := newKey(t)
	open := func(port int) *testFleet {
		return openFleet(t, func(c *config.Config) {
			c.NatsURL, c.NatsUser, c.NatsPassword, c.ReplyPrefixes, c.MaxBytes = url, "fleet", "fleet-secret", config.List{
				"_INBOX.{owner}."}, 64<<20
			c.HTTPAddr, c.HTTPDomain, c.SecretsKey = fmt.Sprintf("127.0.0.1:%d", port), "w.test", key
			c.HTTPAcme, c.HTTPAcmeCA, c.HTTPAcmeEmail = ca.Directory, ca.RootsFile, "ops@fleet.example"
			require.NoError(t, c.Validate())
		})
	}
	a, b := open(0), open(port)
	ask := func(h *testFleet, host string) (string, string, error) { return secure(ca, h.fleet.HTTPAddr(), host) }
	dir := t.TempDir()
	path := filepath.Join(dir, "shop.js")
	require.NoError(t, os.WriteFile(path, []byte(`export default { fetch: () => new Response("shop") }`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "shop.pinwheel.json"),
		[]byte(`{"http": {"routes": ["shop.acme.example/*", "*.acme.example/*"]}}`), 0o600))
	code, _, errs := a.command("", "owners", "set", "acme", "--hosts", "acme.example,*.acme.example")
	require.Zero(t, code, errs)
	code, _, errs = a.command("", "deploy", path, "--owner", "acme")
	require.Zero(t, code, errs)

	for _, host := range []string{"shop--acme.w.test", "shop.acme.example"} {
		serials := map[string]bool{}
		for _, h := range []*testFleet{a, b} { // either may hear later which hosts the owner has
			require.Eventually(t, func() bool {
				body, serial, err := ask(h, host)
				if err == nil {
					serials[serial] = true
				}
				return body == "200 HTTP/2.0 shop"
			}, patience, tick)
		}
		require.Len(t, serials, 1)
	}
	for _, host := range []string{"other--acme.w.test", "1--shop--acme.w.test", "any.acme.example", "other.example",
		"w.test"} {
		_, _, err := ask(a, host)
		require.Error(t, err, host)
	}
	require.Equal(t, []string{"shop--acme.w.test", "shop.acme.example"}, ca.Orders())

	code, _, errs = a.command("", "owners", "set", "acme", "--hosts", "")
	require.Zero(t, code, errs)
	require.Eventually(t, func() bool { _, _, err := ask(b, "shop.acme.example"); return err != nil }, patience, tick)
	_, err := a.js.KeyValue(t.Context(), certificates.Bucket)
	require.NoError(t, err)
}

// Without a key for what is stored, nothing starts: neither a process nor a supervisor.
func TestACMENeedsAKey(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	withWeb(&cfg)
	cfg.HTTPAcme = "letsencrypt"
	err := fleet.Serve(t.Context(), cfg, zerolog.Nop(), nil)
	require.ErrorContains(t, err, "PINWHEEL_SECRETS_KEY is empty")
	err = fleet.Supervise(t.Context(), cfg, zerolog.Nop(), io.Discard, nil)
	require.ErrorContains(t, err, "PINWHEEL_SECRETS_KEY is empty")
}

// A fleet without ACME has no bucket for it.
func TestNoACME(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	_, err := h.js.KeyValue(t.Context(), certificates.Bucket)
	require.ErrorIs(t, err, jetstream.ErrBucketNotFound)
}

// The processes of a supervisor share a socket: whichever the CA reaches has the answer.
func TestSupervisedACME(t *testing.T) {
	t.Parallel()
	port := natstest.FreePort(t)
	ca := acmetest.Start(t, port, ninetyDays)
	key, _ := newKey(t)
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	s := supervise(t, "PINWHEEL_HTTP_ADDR="+addr, "PINWHEEL_HTTP_DOMAIN=w.test", "PINWHEEL_HTTP_ACME="+ca.Directory,
		"PINWHEEL_HTTP_ACME_CA="+ca.RootsFile, "PINWHEEL_SECRETS_KEY="+key,
		"PINWHEEL_NATS_PORT=-1", "PINWHEEL_DATA="+natstest.StoreDir(t))
	h := &testFleet{t: t}
	h.connect(s.URL)
	h.deploy("acme", "w", `export default { fetch: () => new Response("hello") }`)
	s.installed()
	serials := map[string]bool{}
	for range 20 {
		body, serial, err := secure(ca, addr, "w--acme.w.test")
		require.NoError(t, err)
		require.Equal(t, "200 HTTP/2.0 hello", body)
		serials[serial] = true
	}
	require.Len(t, serials, 1)
	require.Equal(t, []string{"w--acme.w.test"}, ca.Orders())
}
