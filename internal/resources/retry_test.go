package resources_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/resources"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func TestMain(m *testing.M) {
	natstest.BeServer()
	os.Exit(m.Run())
}

// TestTwoMakeTheSameInACluster has two connections make the same buckets at once, as processes do that start together.
func TestTwoMakeTheSameInACluster(t *testing.T) {
	t.Parallel()
	cluster := natstest.StartCluster(t, 3)
	var reconcilers [2]*resources.Reconciler
	for i := range reconcilers {
		js, err := jetstream.New(cluster.Connect(i))
		require.NoError(t, err)
		reconcilers[i] = &resources.Reconciler{JS: js}
	}
	for round := range 4 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		errs := make(chan error, len(reconcilers))
		for _, r := range reconcilers {
			go func() {
				_, err := r.Bucket(ctx, jetstream.KeyValueConfig{Bucket: fmt.Sprintf("B%d", round), History: 3, Replicas: 3})
				errs <- err
			}()
		}
		for range reconcilers {
			require.NoError(t, <-errs)
		}
		cancel()
	}
}
