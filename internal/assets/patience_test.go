package assets_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/assets"
	"github.com/pinwheel-run/pinwheel/internal/natstest"
)

func TestMain(m *testing.M) {
	natstest.BeServer()
	os.Exit(m.Run())
}

// TestTwoMakeTheSameInACluster has two connections make the same buckets at once, as processes do that start together.
func TestTwoMakeTheSameInACluster(t *testing.T) {
	cluster := natstest.StartCluster(t, 3)
	var keepers [2]*assets.Keeper
	for i := range keepers {
		js, err := jetstream.New(cluster.Connect(i))
		require.NoError(t, err)
		keepers[i] = &assets.Keeper{JS: js}
	}
	for round := range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		errs := make(chan error, len(keepers))
		for _, k := range keepers {
			go func() {
				_, err := k.Bucket(ctx, jetstream.KeyValueConfig{Bucket: fmt.Sprintf("B%d", round), History: 3, Replicas: 3})
				errs <- err
			}()
		}
		for range keepers {
			require.NoError(t, <-errs)
		}
		cancel()
	}
}
