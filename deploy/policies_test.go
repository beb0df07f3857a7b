package deploy_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func openPolicies(t *testing.T) (*deploy.Policies, jetstream.JetStream) {
	t.Helper()
	js, err := jetstream.New(natstest.Connect(t, natstest.Start(t)))
	require.NoError(t, err)
	s, err := deploy.OpenPolicies(t.Context(), js, deploy.Config{CheckEvery: 10 * time.Millisecond})
	require.NoError(t, err)
	return s, js
}

// Changes made at the same time are all kept.
func TestPoliciesAreChangedTogether(t *testing.T) {
	t.Parallel()
	s, _ := openPolicies(t)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			_, err := s.Set(t.Context(), "acme", func(p *workers.Policy) { p.MaxRunning++ })
			require.NoError(t, err)
		})
	}
	all.Wait()
	p, err := s.Get(t.Context(), "acme")
	require.NoError(t, err)
	require.Equal(t, workers.Policy{MaxRunning: 20}, p)
	p, err = s.Get(t.Context(), "nobody")
	require.NoError(t, err)
	require.Zero(t, p)
	_, err = s.Set(t.Context(), "acme", func(p *workers.Policy) { p.Weight = 1000 })
	require.ErrorContains(t, err, "weight is 1000")
	_, err = s.Set(t.Context(), "a.b", func(*workers.Policy) {})
	require.Error(t, err)
}

// A watcher has what stands and every change; what cannot be read changes nothing.
func TestPoliciesAreWatched(t *testing.T) {
	t.Parallel()
	s, js := openPolicies(t)
	set := func(owner string, weight int) {
		_, err := s.Set(t.Context(), owner, func(p *workers.Policy) { p.Weight = weight })
		require.NoError(t, err)
	}
	set("first", 2)
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	seen := map[string]workers.Policy{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Watch(ctx, func(owner string, p workers.Policy) {
			mu.Lock()
			defer mu.Unlock()
			if seen[owner] = p; p.IsZero() {
				delete(seen, owner)
			}
		}, func() {})
	}()
	has := func(want map[string]workers.Policy) {
		t.Helper()
		require.Eventually(t, func() bool {
			mu.Lock()
			defer mu.Unlock()
			if len(seen) != len(want) {
				return false
			}
			for owner, p := range want {
				if !seen[owner].Equal(p) {
					return false
				}
			}
			return true
		}, patience, time.Millisecond)
	}
	has(map[string]workers.Policy{"first": {Weight: 2}})
	set("second", 3)
	has(map[string]workers.Policy{"first": {Weight: 2}, "second": {Weight: 3}})
	kv, err := js.KeyValue(t.Context(), deploy.BucketOwners)
	require.NoError(t, err)
	_, err = kv.PutString(t.Context(), "first", `{"weight":5,"future":1}`)
	require.NoError(t, err)
	require.NoError(t, s.Remove(t.Context(), "second"))
	has(map[string]workers.Policy{"first": {Weight: 2}})

	// A bucket that was created again is found, also when it has as many revisions as the one before.
	for _, revisions := range []int{1, 20} {
		require.NoError(t, js.DeleteKeyValue(t.Context(), deploy.BucketOwners))
		again, err := deploy.OpenPolicies(t.Context(), js, deploy.Config{})
		require.NoError(t, err)
		for n := range revisions {
			_, err = again.Set(t.Context(), "third", func(p *workers.Policy) { p.Weight = 1 + n })
			require.NoError(t, err)
		}
		has(map[string]workers.Policy{"third": {Weight: revisions}})
	}
	cancel()
	<-ended
}
