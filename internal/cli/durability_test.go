package cli

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// served runs a process of the fleet until it takes events or fails, and returns what it logged.
func served(t *testing.T, cfg Config) (logged string, err error) {
	t.Helper()
	var out screen
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	err = serve(ctx, cfg, zerolog.New(&out), func(*fleet, string) { stop() })
	return out.String(), err
}

// natsServer starts a server that the options describe, and returns its URL.
func natsServer(t *testing.T, o *server.Options) string {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog, o.JetStream, o.StoreDir = "127.0.0.1", -1, true, true, true, t.TempDir()
	srv, err := server.NewServer(o)
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	require.True(t, srv.ReadyForConnections(patience))
	return srv.ClientURL()
}

func TestDurabilityIsToldAndNeverMoreThanIsKnown(t *testing.T) {
	cfg := testConfig(t)
	logged, err := served(t, cfg)
	require.NoError(t, err)
	require.Contains(t, logged, `"mode":"default","replicas":1,"message":"durability: one copy, written to the operating system before the publisher is told, and to disk at most 2m0s later`)

	cfg = testConfig(t)
	cfg.Durability = "fsync"
	logged, err = served(t, cfg)
	require.NoError(t, err)
	require.Contains(t, logged, `"mode":"fsync","replicas":1,"message":"durability: one copy, on disk before the publisher is told`)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	cfg.NatsURL = natsServer(t, &server.Options{HTTPHost: "127.0.0.1", HTTPPort: port})
	logged, err = served(t, cfg)
	require.NoError(t, err)
	require.Contains(t, logged, "whether NATS does it cannot be told")
	require.Contains(t, logged, `"mode":"unknown"`)
	cfg.NatsMonitor = List{fmt.Sprintf("http://127.0.0.1:%d", port)}
	_, err = served(t, cfg)
	require.ErrorContains(t, err, "PINWHEEL_DURABILITY is fsync, and NATS does not fsync before it acknowledges (it does so every 2m0s)")
	cfg.Durability = "default"
	logged, err = served(t, cfg)
	require.NoError(t, err)
	require.Contains(t, logged, `"mode":"default"`)
}
