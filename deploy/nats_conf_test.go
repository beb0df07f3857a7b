package deploy_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// nats-server's own check, which also warns, finds nothing in any configuration that we ship.
func TestNATSConfigurationsWarnOfNothing(t *testing.T) {
	issuer, err := nkeys.CreateAccount()
	require.NoError(t, err)
	public, err := issuer.PublicKey()
	require.NoError(t, err)
	t.Setenv("CALLOUT_ISSUER", public)
	for _, name := range []string{"FLEET", "BACKUP", "ACME", "BETA", "CALLOUT"} {
		t.Setenv(name+"_PASSWORD", "secret")
	}
	files, err := filepath.Glob("nats/*.conf")
	require.NoError(t, err)
	require.Len(t, files, 5)
	for _, file := range files {
		o := &server.Options{CheckConfig: true}
		require.NoError(t, o.ProcessConfigFile(file), file)
		require.Equal(t, 2*time.Minute, o.SyncInterval, file)
	}
}

// The configuration that docker-compose.yml mounts must be one that the server takes; only paths and ports are the
// test's own.
func TestNATSConfigurationRuns(t *testing.T) {
	t.Parallel()
	opts, err := server.ProcessConfigFile("nats/nats.conf")
	require.NoError(t, err)
	require.True(t, opts.JetStream)
	require.Equal(t, "/data", opts.StoreDir)
	opts.StoreDir, opts.Host, opts.Port, opts.HTTPHost, opts.HTTPPort = t.TempDir(), "127.0.0.1", -1, "127.0.0.1", -1
	opts.NoLog, opts.NoSigs = true, true
	srv, err := server.NewServer(opts)
	require.NoError(t, err)
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	require.True(t, srv.ReadyForConnections(patience))
	nc, err := natstest.Dial(srv.ClientURL())
	require.NoError(t, err)
	defer nc.Close()
	mustDeploy(t, open(t, nc, deploy.Config{}), "acme", "w", module(1))
}
