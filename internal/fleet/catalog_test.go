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
	c.Begin(w)
	require.True(t, c.Idempotent("acme", "pay"), "events may run in it")
	require.Nil(t, c.Active("acme", "pay"), "it does not run everywhere")
	c.Install(w)
	c.Install(w)
	require.True(t, c.Idempotent("acme", "pay"))
	require.Same(t, w, c.Active("acme", "pay"))
	require.False(t, c.Idempotent("acme", "other"))
	c.Remove("acme", "pay")
	c.Remove("acme", "pay")
	require.False(t, c.Idempotent("acme", "pay"))
	require.Nil(t, c.Active("acme", "pay"))
	require.Zero(t, c.idempotent.Load())
	c.Install(w)
	later := &events.Worker{Owner: "acme", Name: "pay"}
	c.Begin(later)
	require.True(t, c.Idempotent("acme", "pay"), "of the version before")
	c.Install(later)
	require.False(t, c.Idempotent("acme", "pay"))
	require.Zero(t, c.idempotent.Load())
}
