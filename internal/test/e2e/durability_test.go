package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// served runs a process of the fleet until it takes events or fails, and returns what it logged.
func served(t *testing.T, cfg config.Config) (logged string, err error) {
	t.Helper()
	var out output
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	err = fleet.Serve(ctx, cfg, zerolog.New(&out), func(*fleet.Process, string) { stop() })
	return out.String(), err
}

func TestDurabilityIsToldAndNeverMoreThanIsKnown(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	logged, err := served(t, cfg)
	require.NoError(t, err)
	require.Contains(t, logged, `"mode":"default","replicas":1,"message":"durability: one copy, written to the operating system before the publisher gets an ack, and to disk at most 2m0s later`)

	cfg = testConfig(t)
	cfg.Durability = "fsync"
	logged, err = served(t, cfg)
	require.NoError(t, err)
	require.Contains(t, logged, `"mode":"fsync","replicas":1,"message":"durability: one copy, on disk before the publisher gets an ack`)

	port := natstest.FreePort(t)
	cfg.NatsURL = natstest.StartOptions(t, &server.Options{HTTPHost: "127.0.0.1", HTTPPort: port})
	logged, err = served(t, cfg)
	require.NoError(t, err)
	require.Contains(t, logged, "whether NATS does it cannot be told")
	require.Contains(t, logged, `"mode":"unknown"`)
	cfg.NatsMonitor = config.List{fmt.Sprintf("http://127.0.0.1:%d", port)}
	_, err = served(t, cfg)
	require.ErrorContains(t, err, "PINWHEEL_DURABILITY is fsync, and NATS does not fsync before it acknowledges (it does so every 2m0s)")
	cfg.Durability = "default"
	logged, err = served(t, cfg)
	require.NoError(t, err)
	require.Contains(t, logged, `"mode":"default"`)
}

// A process whose consumer cannot start ends by itself, and names the variable.
func TestProcessWithoutStorageEnds(t *testing.T) {
	t.Parallel()
	const storage = 16 << 30
	cfg := testConfig(t)
	cfg.NatsURL = natstest.StartOptions(t, &server.Options{JetStreamMaxStore: storage})
	cfg.DeadLetterBytes, cfg.HTTPAddr = 2*storage, "127.0.0.1:0"
	_, err := served(t, cfg)
	require.ErrorContains(t, err, "JetStream cannot reserve what PINWHEEL_DEAD_LETTER_BYTES is (32GiB): give nats-server more storage")
}
