package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// Workers and owners are found in the memory of a process, as soon as it runs them.
func TestWorkersAndOwnersAreFound(t *testing.T) {
	t.Parallel()
	h := openFleet(t, withToken)
	c := control.NewClient(h.nc, "pinwheel", "") // they are open
	none, err := control.Ask(t.Context(), c, control.WorkersFind, control.FindWorkers{})
	require.NoError(t, err)
	require.Equal(t, control.FoundWorkers{Workers: []control.WorkerSummary{}}, none)

	h.deploy("acme", "b", `export default { task() {} }`, `{"mode":"shared"}`)
	w := h.deploy("acme", "b", `export default { task() {}, fetch: () => new Response("") }`)
	h.deploy("acme", "A", `export default { task() {} }`)
	h.deploy("Globex", "shop", `export default { task() {} }`)
	all, err := control.Ask(t.Context(), c, control.WorkersFind, control.FindWorkers{Limit: 2})
	require.NoError(t, err)
	require.Equal(t, []any{3, "acme/A", 2}, []any{all.Total, all.Next, len(all.Workers)})
	require.Equal(t, []string{"shop", "A"}, []string{all.Workers[0].Name, all.Workers[1].Name})
	rest, err := control.Ask(t.Context(), c, control.WorkersFind, control.FindWorkers{Limit: 2, After: all.Next})
	require.NoError(t, err)
	require.Empty(t, rest.Next)
	require.Equal(t, control.WorkerSummary{
		Owner: "acme", Name: "b", Version: w.Version, Number: 2, Versions: 2,
		Handlers: []events.Kind{events.Fetch, events.Task}, Mode: "pinned", DeployedAt: w.DeployedAt.UTC(),
	}, rest.Workers[0])
	some, err := control.Ask(t.Context(), c, control.WorkersFind, control.FindWorkers{Match: "X/sH"})
	require.NoError(t, err)
	require.Equal(t, []any{1, "Globex"}, []any{some.Total, some.Workers[0].Owner})
	some, err = control.Ask(t.Context(), c, control.WorkersFind, control.FindWorkers{Owner: "acme", Match: "a/"})
	require.NoError(t, err)
	require.Zero(t, some.Total)

	h.ask("owners.set", `{"owner":"initech","policy":{"weight":2}}`)
	h.ask("owners.set", `{"owner":"acme","policy":{"weight":3}}`)
	var owners control.FoundOwners
	policies := func(want int) {
		t.Helper()
		require.Eventually(t, func() bool {
			owners, err = control.Ask(t.Context(), c, control.OwnersFind, control.FindOwners{})
			have := 0
			for _, o := range owners.Owners {
				if o.Policy != nil {
					have++
				}
			}
			return err == nil && have == want
		}, patience, patience/1000)
	}
	policies(2)
	require.Equal(t, control.FoundOwners{Total: 3, Owners: []control.OwnerSummary{
		{Owner: "Globex", Workers: 1}, {Owner: "acme", Workers: 2, Policy: &workers.Policy{Weight: 3}},
		{Owner: "initech", Policy: &workers.Policy{Weight: 2}},
	}}, owners)
	h.ask("owners.rm", `{"owner":"initech"}`)
	policies(1)
	require.Equal(t, 2, owners.Total)
	page, err := control.Ask(t.Context(), c, control.OwnersFind, control.FindOwners{Match: "E", Limit: 1})
	require.NoError(t, err)
	require.Equal(t, []any{2, "Globex"}, []any{page.Total, page.Next})

	require.NoError(t, h.fleet.Workers().Remove(t.Context(), "Globex", "shop"))
	require.Eventually(t, func() bool {
		owners, err = control.Ask(t.Context(), c, control.OwnersFind, control.FindOwners{Match: "globex"})
		return err == nil && owners.Total == 0
	}, patience, patience/1000)
}
