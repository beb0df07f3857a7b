package catalog

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// installing calls f while the catalog installs in.
func installing(c *Catalog, in workers.Installation, f func()) {
	c.Follow(Follower{Installing: func(workers.Installation) { f() }})
	c.Install(in)
	c.followers = nil
}

func TestIdempotentWorkers(t *testing.T) {
	t.Parallel()
	var c Catalog
	w := &workers.Worker{Owner: "acme", Name: "pay", Spec: workers.Spec{Idempotent: true}}
	require.False(t, c.Idempotent("acme", "pay"))
	installing(&c, workers.Only(w), func() {
		require.True(t, c.Idempotent("acme", "pay"), "events may run in it")
		_, ok := c.Installed("acme", "pay")
		require.False(t, ok, "it does not run everywhere")
	})
	c.Install(workers.Only(w))
	require.True(t, c.Idempotent("acme", "pay"))
	in, ok := c.Installed("acme", "pay")
	require.True(t, ok)
	require.Same(t, w, in.Active())
	require.False(t, c.Idempotent("acme", "other"))
	c.Remove("acme", "pay")
	c.Remove("acme", "pay")
	require.False(t, c.Idempotent("acme", "pay"))
	_, ok = c.Installed("acme", "pay")
	require.False(t, ok)
	require.Zero(t, c.idempotent.Load())
	c.Install(workers.Only(w))
	later := &workers.Worker{Owner: "acme", Name: "pay", Version: "2-x"}
	both := workers.Only(w)
	both.Versions = append(both.Versions, later)
	both.Deployment.Split = []workers.Share{{Version: "", Percent: 90}, {Version: "2-x", Percent: 10}}
	c.Install(both)
	require.True(t, c.Idempotent("acme", "pay"), "one version of the split is")
	installing(&c, workers.Only(later), func() {
		require.True(t, c.Idempotent("acme", "pay"), "of the version before")
	})
	require.False(t, c.Idempotent("acme", "pay"))
	require.Zero(t, c.idempotent.Load())
}

func TestListsOfWhatIsInstalled(t *testing.T) {
	t.Parallel()
	var c Catalog
	require.Empty(t, c.All())
	require.True(t, c.Empty())
	w := &workers.Worker{Owner: "acme", Name: "pay"}
	installing(&c, workers.Only(w), func() { require.Empty(t, c.All(), "it does not run everywhere") })
	require.False(t, c.Empty())
	var list []*workers.Installation
	installing(&c, workers.Only(&workers.Worker{Owner: "acme", Name: "pay", Version: "2-x"}), func() { list = c.All() })
	require.Len(t, list, 1)
	require.Same(t, w, list[0].Versions[0])
	c.Remove("acme", "pay")
	require.Empty(t, c.All())
	require.True(t, c.Empty())
	require.Len(t, list, 1, "who has it keeps it")
}

func TestRollouts(t *testing.T) {
	t.Parallel()
	var c Catalog
	in := workers.Only(&workers.Worker{Owner: "acme", Name: "pay"})
	c.Install(in)
	require.Empty(t, c.Rollouts())
	in.Deployment.Rollout = &workers.Rollout{State: workers.RolloutRunning}
	c.Install(in)
	require.Len(t, c.Rollouts(), 1)
	c.Remove("acme", "pay")
	require.Empty(t, c.Rollouts())
}

func TestWorkerOwners(t *testing.T) {
	t.Parallel()
	var c Catalog
	c.SetPolicy("beta", workers.Policy{Weight: 2})
	require.False(t, c.HasWorkers("beta"), "it has a policy only")
	for _, name := range []string{"a", "a", "b"} {
		c.Install(workers.Only(&workers.Worker{Owner: "acme", Name: name}))
	}
	c.Install(workers.Only(&workers.Worker{Owner: "beta", Name: "a"}))
	require.ElementsMatch(t, []string{"acme", "beta"}, slices.Collect(c.Owners()))
	c.Remove("beta", "a")
	c.Remove("acme", "a")
	require.True(t, c.HasWorkers("acme"), "it has another")
	c.Remove("acme", "b")
	require.False(t, c.HasWorkers("acme"))
	require.Empty(t, slices.Collect(c.Owners()))
	require.Equal(t, 2, c.Policy("beta").Weight)
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	var c Catalog
	require.Equal(t, workers.Policy{}, *c.Policy("acme"))
	c.SetPolicy("acme", workers.Policy{Weight: 2})
	first := c.Policy("acme")
	require.Equal(t, 2, first.Weight)
	require.Same(t, first, c.Policies()["acme"])
	c.SetPolicy("acme", workers.Policy{Weight: 2})
	require.NotSame(t, first, c.Policy("acme"))
	c.SetPolicy("acme", workers.Policy{})
	require.True(t, c.Policy("acme").IsZero())
	require.Empty(t, c.Policies())
	c.owners.Range(func(any, any) bool { t.Fatal("it is forgotten"); return false })
}

// Followers are told in order: before and after lookups find a change.
func TestFollowers(t *testing.T) {
	t.Parallel()
	var c Catalog
	var told []string
	tell := func(what string) {
		_, found := c.Installed("acme", "w")
		told = append(told, fmt.Sprint(what, " ", found, " ", c.Policy("acme").Weight))
	}
	follower := func(n int) Follower {
		return Follower{
			Installing: func(workers.Installation) { tell(fmt.Sprint(n, " installing")) },
			Installed:  func(workers.Installation) { tell(fmt.Sprint(n, " installed")) },
			Removing:   func(string, string) { tell(fmt.Sprint(n, " removing")) },
			Removed:    func(string, string) { tell(fmt.Sprint(n, " removed")) },
			PolicySet:  func(_ string, p workers.Policy) { tell(fmt.Sprint(n, " policy ", p.Weight)) },
		}
	}
	c.Follow(follower(1), Follower{}, follower(2))
	c.Install(workers.Only(&workers.Worker{Owner: "acme", Name: "w"}))
	c.SetPolicy("acme", workers.Policy{Weight: 3})
	c.Remove("acme", "w")
	require.Equal(t, []string{
		"1 installing false 0", "2 installing false 0", "1 installed true 0", "2 installed true 0",
		"1 policy 3 true 3", "2 policy 3 true 3",
		"1 removing true 3", "2 removing true 3", "1 removed false 3", "2 removed false 3",
	}, told)
}

// Lookups go on while the catalog changes. A follower that looks up what it is told of finds that, or what came before.
func TestLookupsWhileItChanges(t *testing.T) {
	t.Parallel()
	var c Catalog
	c.Follow(Follower{
		Installed: func(in workers.Installation) {
			found, ok := c.Installed(in.Owner, in.Name)
			require.True(t, ok)
			require.Equal(t, in, found)
		},
		PolicySet: func(owner string, p workers.Policy) { require.Equal(t, p, *c.Policy(owner)) },
	})
	var running sync.WaitGroup
	for i := range 4 {
		running.Go(func() {
			for n := range 200 {
				w := &workers.Worker{Owner: "acme", Name: fmt.Sprint("w", n%5), Version: fmt.Sprint(i, n)}
				w.Idempotent = n%2 == 0
				c.Install(workers.Only(w))
				c.SetPolicy("acme", workers.Policy{Weight: n % 3})
				c.Idempotent("acme", "w1")
				c.All()
				if n%3 == 0 {
					c.Remove("acme", w.Name)
				}
			}
		})
	}
	running.Wait()
	for n := range 5 {
		c.Remove("acme", fmt.Sprint("w", n))
	}
	c.SetPolicy("acme", workers.Policy{})
	require.True(t, c.Empty())
	require.Zero(t, c.idempotent.Load())
	c.owners.Range(func(any, any) bool { t.Fatal("it is forgotten"); return false })
}

// filled returns a catalog of n workers, each of its owner, or of one owner.
func filled(n int, owner func(i int) string) *Catalog {
	c := &Catalog{}
	for i := range n {
		c.Install(workers.Only(&workers.Worker{Owner: owner(i), Name: fmt.Sprint("w", i), Spec: workers.Spec{
			Idempotent: i == 0}}))
		c.SetPolicy(owner(i), workers.Policy{Weight: 2})
	}
	return c
}

func BenchmarkCatalog(b *testing.B) {
	const n = 10_000
	own, names := make([]string, n), make([]string, n)
	for i := range n {
		own[i], names[i] = fmt.Sprint("owner", i), fmt.Sprint("w", i)
	}
	c := filled(n, func(i int) string { return own[i] })
	b.Run("idempotent", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			c.Idempotent(own[i%n], names[i%n])
		}
	})
	b.Run("idempotent, in parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				c.Idempotent(own[i%n], names[i%n])
			}
		})
	})
	b.Run("idempotent, one worker", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				c.Idempotent(own[77], names[77])
			}
		})
	})
	b.Run("policy", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			c.Policy(own[i%n])
		}
	})
	b.Run("residents", func(b *testing.B) {
		for range b.N {
			for range c.Owners() {
			}
		}
	})
	installs := func(of *Catalog, owner func(i int) string) func(b *testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				of.Install(workers.Only(&workers.Worker{Owner: owner(i % n), Name: names[i%n]}))
			}
		}
	}
	b.Run("install", installs(c, func(i int) string { return own[i] }))
	one := func(int) string { return "acme" }
	b.Run("install, one owner", installs(filled(n, one), one))
}
