package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

const patience = time.Minute

// start runs the shipped configuration with the service, and returns the address for clients.
func start(t *testing.T, owners map[string]string) string {
	t.Helper()
	issuer, err := nkeys.CreateAccount()
	require.NoError(t, err)
	public, err := issuer.PublicKey()
	require.NoError(t, err)
	seed, err := issuer.Seed()
	require.NoError(t, err)
	t.Setenv("CALLOUT_ISSUER", public)
	t.Setenv("CALLOUT_PASSWORD", "callout-secret")
	t.Setenv("FLEET_PASSWORD", "fleet-secret")
	t.Setenv("BACKUP_PASSWORD", "backup-secret")
	o, err := server.ProcessConfigFile("../../deploy/nats/callout.conf")
	require.NoError(t, err)
	o.Host, o.Port, o.HTTPHost, o.HTTPPort, o.StoreDir, o.NoLog, o.NoSigs = "127.0.0.1", -1, "127.0.0.1", -1, t.TempDir(), true, true
	srv, err := server.NewServer(o)
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	require.True(t, srv.ReadyForConnections(patience))

	hashed := map[string]string{}
	for token, owner := range owners {
		h := sha256.Sum256([]byte(token))
		hashed[hex.EncodeToString(h[:])] = owner
	}
	text, err := json.Marshal(hashed)
	require.NoError(t, err)
	s, err := newService(string(seed), text)
	require.NoError(t, err)
	nc, err := nats.Connect(srv.ClientURL(), nats.UserInfo("callout", "callout-secret"))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	require.NoError(t, s.serve(nc))
	return srv.ClientURL()
}

func TestOwnersGetWhatIsTheirsByTheirToken(t *testing.T) {
	url := start(t, map[string]string{"token of acme": "acme", "token of beta": "beta"})
	fleet := fleettest.Start(t, func(c *config.Config) {
		c.NatsURL, c.NatsUser, c.NatsPassword, c.ReplyPrefixes = url, "fleet", "fleet-secret", config.List{"_INBOX.{owner}."}
	})
	worker := filepath.Join(t.TempDir(), "w.js")
	require.NoError(t, os.WriteFile(worker, []byte(`export default { fetch: async (r) => new Response("hello " + await r.text()) }`), 0o600))
	fleet.Deploy(t, worker, "--owner", "acme")
	fleet.Deploy(t, worker, "--owner", "beta")

	denied := make(chan error, 10)
	acme, err := nats.Connect(url, nats.Token("token of acme"), nats.CustomInboxPrefix("_INBOX.acme"),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { denied <- err }))
	require.NoError(t, err)
	defer acme.Close()
	m, err := acme.Request("pinwheel.call.fetch.acme.w", []byte("acme"), patience)
	require.NoError(t, err)
	require.Equal(t, "hello acme", string(m.Data))

	for _, subject := range []string{"pinwheel.call.fetch.beta.w", "pinwheel.events.fetch.beta.w", "$JS.API.INFO", "$SRV.PING", "pinwheel.control.pool", "$SYS.REQ.USER.AUTH", "$KV.PINWHEEL_WORKERS.acme.w"} {
		require.NoError(t, acme.PublishRequest(subject, acme.NewInbox(), nil))
		require.ErrorContains(t, <-denied, `Permissions Violation for Publish to "`+subject+`"`)
	}
	for _, subject := range []string{"_INBOX.>", "_INBOX.beta.>", "pinwheel.>", "pinwheel.logs.beta.*", "$SYS.REQ.USER.AUTH", ">"} {
		_, err := acme.SubscribeSync(subject)
		require.NoError(t, err)
		require.NoError(t, acme.Flush())
		require.ErrorContains(t, <-denied, `Permissions Violation for Subscription to "`+subject+`"`)
	}
	for _, o := range [][]nats.Option{nil, {nats.Token("token of nobody")}, {nats.UserInfo("fleet", "guessed")}, {nats.UserInfo("callout", "guessed")}} {
		_, err := nats.Connect(url, o...)
		require.ErrorIs(t, err, nats.ErrAuthorization)
	}
}

func TestOwnersAreNames(t *testing.T) {
	issuer, err := nkeys.CreateAccount()
	require.NoError(t, err)
	seed, err := issuer.Seed()
	require.NoError(t, err)
	_, err = newService(string(seed), []byte(`{"00": "*"}`))
	require.ErrorContains(t, err, `owner "*"`)
	_, err = newService("", nil)
	require.ErrorContains(t, err, "CALLOUT_SEED")
}
