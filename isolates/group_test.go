package isolates

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// workerOf makes a worker of an owner.
func workerOf(owner, code string) *workers.Worker {
	w := worker("w", code)
	w.Owner = owner
	w.Limits.CPU = ample
	return w
}

// group puts owners into a group.
func (b *bench) group(name string, owners ...string) {
	for _, o := range owners {
		b.pool.SetPolicy(o, workers.Policy{Group: name})
	}
}

// awaitIdle waits until that many isolates are open, nothing runs in them, and their tenants have that many contexts.
// An isolate of mode shared is counted nowhere for a moment while its thread gives it back.
func (b *bench) awaitIdle(isolates int, contexts map[string]int) {
	b.t.Helper()
	var s Stats
	require.Eventually(b.t, func() bool {
		s = b.pool.Stats()
		tenants := map[string]int{}
		for _, o := range s.Owners {
			tenants[o.Owner] = o.Contexts
		}
		return s.Cached == isolates && s.Busy == 0 && maps.Equal(contexts, tenants)
	}, patience, time.Millisecond, "%+v", &s)
}

// text runs an event and returns the body of its reply.
func (b *bench) text(w *workers.Worker) string {
	b.t.Helper()
	o := b.run(w, fetch("GET", "http://x/", ""))
	require.Nil(b.t, o.end.Failure)
	return string(o.reply.Body)
}

const countsCalls = `let n = 0; export default { fetch: () => new Response(String(++n)) }`

// Owners of a group share isolates, and have contexts of their own in them.
func TestGroupsShareIsolates(t *testing.T) {
	t.Parallel()
	for _, mode := range []workers.Mode{workers.Pinned, workers.Shared} {
		t.Run(string(mode), func(t *testing.T) {
			b := newBench(t)
			b.mode = mode
			b.group("acme", "shop", "blog", "api")
			for round := range 3 {
				for _, owner := range []string{"shop", "blog", "api"} {
					require.Equal(t, fmt.Sprint(round+1), b.text(workerOf(owner, countsCalls)), owner)
				}
			}
			b.awaitIdle(1, map[string]int{"@acme": 3})
			b.text(workerOf("acme", countsCalls)) // an owner with the name of the group
			b.group("rival", "foe")
			b.text(workerOf("foe", countsCalls))
			b.awaitIdle(3, map[string]int{"@acme": 3, "acme": 1, "@rival": 1})
		})
	}
}

// An owner that leaves its group leaves the isolates of it, and never runs there again.
func TestOwnersLeaveGroups(t *testing.T) {
	t.Parallel()
	for _, mode := range []workers.Mode{workers.Pinned, workers.Shared, workers.Persistent} {
		t.Run(string(mode), func(t *testing.T) {
			b := newBench(t)
			b.mode = mode
			b.group("acme", "shop", "blog")
			for _, owner := range []string{"shop", "blog"} {
				require.Equal(t, "1", b.text(workerOf(owner, countsCalls)))
			}
			b.pool.SetPolicy("blog", workers.Policy{})
			require.Equal(t, "1", b.text(workerOf("blog", countsCalls)), "in another context")
			require.Equal(t, "2", b.text(workerOf("shop", countsCalls)), "the others stay")
			b.awaitIdle(2, map[string]int{"@acme": 1, "blog": 1})
			b.group("acme", "blog")
			require.Equal(t, "1", b.text(workerOf("blog", countsCalls)))
			isolates := 1 // it leaves no isolate behind
			if mode == workers.Persistent {
				isolates = 2 // each worker has its own
			}
			b.awaitIdle(isolates, map[string]int{"@acme": 2})
		})
	}
}

// A run that is under way when its owner leaves a group ends in the isolate of the group. What Go holds for it is
// uncounted where it was counted.
func TestOwnerLeavesGroupDuringARun(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	port, reached, open := gate(t)
	b.group("acme", "shop")
	w := workerOf("shop", `export default { async fetch(request, env, ctx) {
		const body = await request.text(); await fetch("http://127.0.0.1:`+fmt.Sprint(port)+`/before"); return new Response(body.length + " " + (globalThis.n = (globalThis.n ?? 0) + 1)) } }`)
	o := b.start(w, fetch("POST", "http://x/", string(make([]byte, 1<<20))))
	require.Equal(t, "/before", <-reached)
	b.pool.SetPolicy("shop", workers.Policy{})
	close(open)
	o.wait(t, o.ended)
	require.Nil(t, o.end.Failure)
	require.Equal(t, "1048576 1", string(o.reply.Body))
	o = b.run(w, fetch("POST", "http://x/", "x"))
	require.Equal(t, "1 1", string(o.reply.Body), "not in the isolate of the group")
	for _, tenant := range []string{"shop", "@acme"} {
		require.Eventually(t, func() bool { return b.pool.holdings.Of(tenant) == 0 }, patience, time.Millisecond)
	}
}

// A group has the largest share of its members, whoever of them asks.
func TestGroupsHaveTheLargestShare(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.OwnerMaxIsolates, c.OwnerHeapMB = 3, 300 })
	shares := func(owner string) [2]int64 {
		n, bytes := b.pool.share(owner)
		return [2]int64{n, bytes >> 20}
	}
	b.pool.SetPolicy("a", workers.Policy{Group: "g", MaxIsolates: 5})
	b.pool.SetPolicy("b", workers.Policy{Group: "g", HeapMB: 400, MaxIsolates: 4})
	b.pool.SetPolicy("c", workers.Policy{Group: "g"})
	for _, owner := range []string{"a", "b", "c"} {
		require.Equal(t, [2]int64{5, 400}, shares(owner))
	}
	require.Equal(t, [2]int64{3, 300}, shares("g"), "an owner with the name of the group")
	b.pool.SetPolicy("a", workers.Policy{Group: "h", MaxIsolates: 6})
	require.Equal(t, [2]int64{4, 400}, shares("c"))
	require.Equal(t, [2]int64{6, 300}, shares("a"))
	b.pool.SetPolicy("b", workers.Policy{})
	require.Equal(t, [2]int64{3, 300}, shares("c"))
	b.pool.SetPolicy("c", workers.Policy{})
	require.Equal(t, 1, b.pool.policies.Groups())
}

// However policies change, an owner's share is what the last ones say.
func TestGroupsFollowPolicies(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64N(1e9)
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	b := newBench(t)
	now := map[string]workers.Policy{}
	for range 1000 {
		owner := fmt.Sprint("o", random.IntN(6))
		p := workers.Policy{Group: []string{"", "g", "h"}[random.IntN(3)], MaxIsolates: random.IntN(4),
			Compilers: []workers.Compilers{"", workers.CompilersFull, workers.CompilersBaseline}[random.IntN(3)],
			Cell:      []workers.Cell{"", workers.CellShared, "guests"}[random.IntN(3)]}
		b.pool.SetPolicy(owner, p)
		now[owner] = p
		for owner, p := range now {
			most, tenant := p.MaxIsolates, owner
			if p.Group != "" {
				tenant = "@" + p.Group
				if p.Cell == "guests" {
					tenant += "/guests"
				}
			}
			if p.Compilers == workers.CompilersBaseline {
				tenant += ":baseline"
			}
			if p.Group != "" {
				for _, other := range now {
					if other.Group == p.Group && other.Cell.OrOf("") == p.Cell.OrOf("") &&
						other.Compilers.OrDefault() == p.Compilers.OrDefault() {
						most = max(most, other.MaxIsolates)
					}
				}
			}
			if most == 0 {
				most = b.pool.cfg.OwnerMaxIsolates
			}
			n, _ := b.pool.share(owner)
			require.EqualValues(t, most, n)
			require.Equal(t, tenant, b.pool.policies.Tenant(owner))
		}
	}
}
