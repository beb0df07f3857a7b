package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

func TestCatalogKnowsIdempotentWorkers(t *testing.T) {
	t.Parallel()
	var c Catalog
	w := &events.Worker{Owner: "acme", Name: "pay", Spec: events.Spec{Idempotent: true}}
	require.False(t, c.Idempotent("acme", "pay"))
	c.Begin(events.Only(w))
	require.True(t, c.Idempotent("acme", "pay"), "events may run in it")
	_, ok := c.Installed("acme", "pay")
	require.False(t, ok, "it does not run everywhere")
	c.Install(events.Only(w))
	c.Install(events.Only(w))
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
	c.Install(events.Only(w))
	later := &events.Worker{Owner: "acme", Name: "pay", Version: "2-x"}
	both := events.Only(w)
	both.Versions = append(both.Versions, later)
	both.Deployment.Split = []events.Share{{Version: "", Percent: 90}, {Version: "2-x", Percent: 10}}
	c.Install(both)
	require.True(t, c.Idempotent("acme", "pay"), "one version of the split is")
	c.Begin(events.Only(later))
	require.True(t, c.Idempotent("acme", "pay"), "of the version before")
	c.Install(events.Only(later))
	require.False(t, c.Idempotent("acme", "pay"))
	require.Zero(t, c.idempotent.Load())
}

func TestCatalogListsWhatIsInstalled(t *testing.T) {
	t.Parallel()
	var c Catalog
	require.Empty(t, c.All())
	w := &events.Worker{Owner: "acme", Name: "pay"}
	c.Begin(events.Only(w))
	require.Empty(t, c.All(), "it does not run everywhere")
	c.Install(events.Only(w))
	c.Begin(events.Only(&events.Worker{Owner: "acme", Name: "pay", Version: "2-x"}))
	list := c.All()
	require.Len(t, list, 1)
	require.Same(t, w, list[0].Versions[0])
	c.Remove("acme", "pay")
	require.Empty(t, c.All())
	require.Len(t, list, 1, "who has it keeps it")
}
