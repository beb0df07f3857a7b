package deploy_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

const bucketStream = "KV_" + deploy.DefaultBucket

// Workers of an emptied bucket stay, with an error in the log, until they are deployed again, removed, or their time is
// over.
func TestWorkersOfAnEmptiedBucketStay(t *testing.T) {
	t.Parallel()
	for name, empty := range map[string]func(t *testing.T, js jetstream.JetStream){
		"purged": func(t *testing.T, js jetstream.JetStream) {
			s, err := js.Stream(t.Context(), bucketStream)
			require.NoError(t, err)
			require.NoError(t, s.Purge(t.Context()))
		},
		"deleted": func(t *testing.T, js jetstream.JetStream) {
			require.NoError(t, js.DeleteKeyValue(t.Context(), deploy.DefaultBucket))
			open(t, js.Conn(), deploy.Config{}) // as the next process that starts makes it
		},
		"deleted as a stream": func(t *testing.T, js jetstream.JetStream) {
			require.NoError(t, js.DeleteStream(t.Context(), bucketStream))
			open(t, js.Conn(), deploy.Config{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			nc := natstest.Connect(t, natstest.Start(t))
			js, err := jetstream.New(nc)
			require.NoError(t, err)
			log, reg := &bytes.Buffer{}, prometheus.NewRegistry()
			s := open(t, nc, deploy.Config{CheckEvery: 20 * time.Millisecond, Log: zerolog.New(zerolog.SyncWriter(log)),
				Metrics: reg})
			a := mustDeploy(t, s, "acme", "a", module(1)).Version
			b := mustDeploy(t, s, "acme", "b", module(1)).Version
			mustDeploy(t, s, "acme", "gone", module(1))
			require.NoError(t, s.Remove(t.Context(), "acme", "gone"))
			r := newRoutes()
			w := s.Watcher(r)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error)
			go func() { done <- w.Run(ctx) }()
			<-w.Ready()
			emptied, err := s.Emptied(t.Context())
			require.NoError(t, err)
			require.False(t, emptied)
			removed := r.removed

			empty(t, js)
			require.Eventually(t, func() bool { return w.Vanished() == 2 }, patience, time.Millisecond)
			require.InDelta(t, 2, testutil.ToFloat64(gauge(t, reg)), 0)
			require.Equal(t, removed, r.removed)
			emptied, err = s.Emptied(t.Context())
			require.NoError(t, err)
			require.Equal(t, name == "purged", emptied)

			s = open(t, nc, deploy.Config{})
			mustDeploy(t, s, "acme", "a", module(1))
			require.Eventually(t, func() bool { return w.Vanished() == 1 }, patience, time.Millisecond)
			require.Contains(t, r.of("acme/a"), a)
			require.Equal(t, []string{b}, r.of("acme/b"))
			require.ErrorIs(t, s.Remove(t.Context(), "acme", "b"), deploy.ErrNotFound)
			r.await(t, "acme/b")
			require.Eventually(t, func() bool { return w.Vanished() == 0 }, patience, time.Millisecond)
			cancel()
			<-done
			require.Contains(t, log.String(), `"worker":"acme.b"`)
		})
	}
}

// gauge is the metric of workers that have vanished.
func gauge(t *testing.T, reg *prometheus.Registry) prometheus.Collector {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "x"})
	for _, f := range families {
		if f.GetName() == "pinwheel_workers_vanished" {
			g.Set(f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	return g
}

// They go when they have had their time, and a worker that is removed goes at once.
func TestVanishedWorkersHaveTheirTime(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	s := open(t, nc, deploy.Config{CheckEvery: 20 * time.Millisecond, KeepVanished: 300 * time.Millisecond})
	mustDeploy(t, s, "acme", "a", module(1))
	b := mustDeploy(t, s, "acme", "b", module(1)).Version
	r := newRoutes()
	run(t, s, r)
	require.NoError(t, s.Remove(t.Context(), "acme", "a"))
	r.await(t, "acme/a")
	require.Equal(t, []string{b}, r.of("acme/b"))
	stream, err := js.Stream(t.Context(), bucketStream)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(t.Context()))
	r.await(t, "acme/b")
}
