package bindings

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// Streams reserve what their owners use, not what they may have: many owners fit on a server that could not give each
// of them its bound. A stream grows with its owner, up to that bound, and one that finds no room says so.
func TestStreamsOfOwnersReserveByUse(t *testing.T) {
	t.Parallel()
	nc, err := natstest.Dial(natstest.StartOptions(t, &server.Options{JetStream: true, StoreDir: natstest.StoreDir(t),
		JetStreamMaxStore: 92 << 20}))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	p := open(t, nc)
	const owners = 20
	for i := range owners {
		owner := fmt.Sprint("o", i)
		p.put(owner, "k", "v")
		p.putObject(owner, "o", []byte("v"))
		p.cache1m(owner, "u", "v")
	}
	most := func(stream string) int64 {
		s, err := p.js.Stream(t.Context(), stream)
		require.NoError(t, err)
		return s.CachedInfo().Config.MaxBytes
	}
	const kv, objects, cached = "KV_PINWHEEL_KV_o0", "OBJ_PINWHEEL_OBJ_o0", "KV_PINWHEEL_CACHE_o0"
	for _, stream := range []string{kv, objects, cached} {
		require.EqualValues(t, firstBytes, most(stream))
	}

	for i := range 9 {
		p.put("o0", fmt.Sprint("k", i), strings.Repeat("v", 500_000))
		p.cache1m("o0", fmt.Sprint("u", i), strings.Repeat("v", 400<<10))
	}
	p.putObject("o0", "o", large(3_000_000))
	require.EqualValues(t, 8<<20, most(kv))
	require.EqualValues(t, 4<<20, most(objects))
	require.Greater(t, most(cached), int64(firstBytes))
	require.Len(t, p.cachedBody("o0", "default", "u0"), 400<<10, "the cache has grown in time")

	_, err = p.inBucket("o1", "put", large(20<<20), free, putting("large", always)...)
	require.ErrorContains(t, err, "503 nats-server has no room left to reserve for the owner's data")
	require.EqualValues(t, 1, testutil.ToFloat64(p.kv.reservations.refused))
	p.put("o1", "k", "another")

	// A process that is late with its update makes the stream smaller than it is full. Nothing is lost, and it grows.
	s, err := p.js.Stream(t.Context(), kv)
	require.NoError(t, err)
	late, before := s.CachedInfo().Config, s.CachedInfo().State.Msgs
	late.MaxBytes = firstBytes
	_, err = p.js.UpdateStream(t.Context(), late)
	require.NoError(t, err)
	info, err := s.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, info.State.Msgs)
	p.put("o0", "more", "v")
	require.EqualValues(t, before+1, func() uint64 { info, _ := s.Info(t.Context()); return info.State.Msgs }())

	p.catalog.SetPolicy("o0", workers.Policy{KVBytes: 3 << 20})
	p.put("o0", "k0", "another process has opened it, with a policy")
	require.EqualValues(t, 3<<20, most(kv), "the policy is a bound for what has grown, too")
	require.Len(t, p.get("o0", "k1"), 500_000)

	// What is reserved and not used is released by a command.
	require.NoError(t, p.js.DeleteStream(t.Context(), "OBJ_PINWHEEL_OBJ_o1"))
	s, err = p.js.Stream(t.Context(), objects)
	require.NoError(t, err)
	wide := s.CachedInfo().Config
	wide.MaxBytes = 14 << 20
	_, err = p.js.UpdateStream(t.Context(), wide)
	require.NoError(t, err)
	unused, err := Unused(t.Context(), p.js, 1)
	require.NoError(t, err)
	require.Len(t, unused, 3*owners-1)
	plan, err := resources.Plan(t.Context(), p.js, unused, nil)
	require.NoError(t, err)
	require.Len(t, plan, 1)
	require.Equal(t, "stream "+objects, plan[0].Resource.String())
	require.NoError(t, (&resources.Reconciler{JS: p.js, Apply: true}).Reconcile(t.Context(), plan[0].Resource))
	require.Less(t, most(objects), int64(7<<20))
	require.Len(t, p.object("o0", "o", ""), 3_000_000)
}
