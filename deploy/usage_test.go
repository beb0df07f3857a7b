package deploy_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// Usage counts all kept versions of an owner, in records and in objects, and nothing of others. Removed workers leave
// their names.
func TestUsageOfAnOwner(t *testing.T) {
	t.Parallel()
	s := newStore(t, deploy.Config{})
	usage := func(owner string) deploy.Usage {
		t.Helper()
		u, err := deploy.UsageOf(t.Context(), s, owner)
		require.NoError(t, err)
		return u
	}
	require.Zero(t, usage("acme"))
	mustDeploy(t, s, "acme", "a", module(1))
	one := usage("acme")
	require.Equal(t, 1, one.Workers)
	require.Greater(t, one.Bytes, int64(len(module(1).Code)))
	mustDeploy(t, s, "acme", "a", module(2))
	mustDeploy(t, s, "acme", "b", module(1))
	mustDeploy(t, s, "acme2", "a", module(1))
	two := usage("acme")
	require.Equal(t, 2, two.Workers)
	require.InDelta(t, 3*one.Bytes, two.Bytes, 10)
	big := bigModule(t, 1)
	mustDeploy(t, s, "acme", "b", big)
	require.Greater(t, usage("acme").Bytes-two.Bytes, int64(len(big.Code)), "it is in the object store")
	require.NoError(t, s.Remove(t.Context(), "acme", "b"))
	left := usage("acme")
	require.Equal(t, 1, left.Workers)
	require.Equal(t, 2, left.Names)
	require.InDelta(t, 2*one.Bytes, left.Bytes, 10)
	_, err := deploy.UsageOf(t.Context(), s, "*")
	require.Error(t, err)
}

// An owner that is bounded has so many workers and bytes, and uses so many names.
func TestDeploysAreBounded(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	s := open(t, nc, deploy.Config{})
	try := func(name string, b *bundle.Bundle, p workers.Policy) error {
		_, err := s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: name, Bundle: b, Policy: p, Bounded: true},
			isFine)
		return err
	}
	var quota *deploy.QuotaError
	policy := workers.Policy{MaxWorkers: 2}
	require.NoError(t, try("a", module(1), policy))
	require.NoError(t, try("b", module(1), policy))
	require.ErrorAs(t, try("c", module(1), policy), &quota)
	require.ErrorContains(t, quota, "acme/c is refused: owner acme has 2 workers, and may have 2 (maxWorkers)")
	require.NoError(t, try("a", module(2), policy), "a version of one that is there")
	require.NoError(t, try("c", module(1), workers.Policy{}), "the default is more")
	require.ErrorAs(t, try("a", bigModule(t, 3), workers.Policy{CodeBytes: 600 << 10}), &quota)
	require.ErrorContains(t, quota, "and all may have 614400 (codeBytes)")
	require.NoError(t, try("a", module(2), workers.Policy{CodeBytes: 1}), "nothing is stored")

	for i := range 10 {
		_, err := s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: fmt.Sprint("x", i), Bundle: module(1)}, isFine)
		require.NoError(t, err)
		require.NoError(t, s.Remove(t.Context(), "acme", fmt.Sprint("x", i)))
	}
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), deploy.DefaultBucket)
	require.NoError(t, err)
	for i := 10; i < 1000; i++ { // what the removals of so many more leave
		require.NoError(t, kv.Purge(t.Context(), fmt.Sprint("acme.x", i)))
	}
	policy.MaxWorkers = 4
	require.NoError(t, try("last", module(1), policy))
	require.NoError(t, s.Remove(t.Context(), "acme", "last"))
	require.ErrorAs(t, try("new", module(1), policy), &quota)
	require.ErrorContains(t, quota, "owner acme has used 1004 names of workers")
	require.NoError(t, try("x7", module(1), policy), "a name that was used")
}

// Deployers of code that is in objects do not take the same number either.
func TestDeployersOfLargeCode(t *testing.T) {
	t.Parallel()
	s := newStore(t, deploy.Config{})
	bundles := []*bundle.Bundle{bigModule(t, 1), bigModule(t, 2), bigModule(t, 3), bigModule(t, 4)}
	var all sync.WaitGroup
	for _, b := range bundles {
		all.Go(func() {
			_, err := s.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: "w", Bundle: b, UploadOnly: true}, isFine)
			assert.NoError(t, err)
		})
	}
	all.Wait()
	versions, err := s.Versions(t.Context(), "acme", "w")
	require.NoError(t, err)
	require.Len(t, versions, 4)
	for i, v := range versions {
		require.Equal(t, i+1, v.Number)
	}
}
