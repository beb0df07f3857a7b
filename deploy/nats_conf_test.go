package deploy_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
)

// The configuration that docker-compose.yml mounts must be one that the server takes; only paths and ports are the test's own.
func TestNATSConfigurationRuns(t *testing.T) {
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
	require.True(t, srv.ReadyForConnections(20*time.Second))
	nc, err := nats.Connect(srv.ClientURL())
	require.NoError(t, err)
	defer nc.Close()
	mustDeploy(t, open(t, nc, deploy.Config{}), "acme", "w", module(1))
}
