package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

func TestCatalogKnowsIdempotentWorkers(t *testing.T) {
	t.Parallel()
	var c Catalog
	w := &workers.Worker{Owner: "acme", Name: "pay", Spec: workers.Spec{Idempotent: true}}
	require.False(t, c.Idempotent("acme", "pay"))
	c.Begin(workers.Only(w))
	require.True(t, c.Idempotent("acme", "pay"), "events may run in it")
	_, ok := c.Installed("acme", "pay")
	require.False(t, ok, "it does not run everywhere")
	c.Install(workers.Only(w))
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
	c.Begin(workers.Only(later))
	require.True(t, c.Idempotent("acme", "pay"), "of the version before")
	c.Install(workers.Only(later))
	require.False(t, c.Idempotent("acme", "pay"))
	require.Zero(t, c.idempotent.Load())
}

func TestCatalogListsWhatIsInstalled(t *testing.T) {
	t.Parallel()
	var c Catalog
	require.Empty(t, c.All())
	w := &workers.Worker{Owner: "acme", Name: "pay"}
	c.Begin(workers.Only(w))
	require.Empty(t, c.All(), "it does not run everywhere")
	c.Install(workers.Only(w))
	c.Begin(workers.Only(&workers.Worker{Owner: "acme", Name: "pay", Version: "2-x"}))
	list := c.All()
	require.Len(t, list, 1)
	require.Same(t, w, list[0].Versions[0])
	c.Remove("acme", "pay")
	require.Empty(t, c.All())
	require.Len(t, list, 1, "who has it keeps it")
}
