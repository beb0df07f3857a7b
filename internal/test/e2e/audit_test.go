package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
)

// changes lists the audit stream.
func (h *testFleet) changes() (list []audit.Record) {
	h.t.Helper()
	for r, err := range audit.New(h.js, "pinwheel").List(h.t.Context(), audit.Filter{}) {
		require.NoError(h.t, err)
		list = append(list, *r)
	}
	return list
}

// Each change by a control endpoint or the owner API is recorded once, with who made it as far as it is known. Requests
// that change nothing are not.
func TestChangesAreRecorded(t *testing.T) {
	t.Parallel()
	h := openFleet(t, func(c *config.Config) { c.Control = config.ControlByPermissions })
	h.deploy("acme", "w", doorWorker, doorManifest)
	id := h.layFor("acme")
	h.ask("owners.set", `{"owner":"acme","policy":{"weight":2}}`)
	h.ask("owners.rm", `{"owner":"acme"}`)
	h.ask("schedules.pause", `{"worker":"acme/w","name":"night"}`)
	answer, failure := h.control("schedules.resume", `{"worker":"acme/w","name":"night"}`, "Pinwheel-Claims", "ada@host")
	require.Empty(t, failure)
	require.NotEmpty(t, answer)
	h.ask("dead.edit", fmt.Sprintf(`{"id":%d,"body":"secret"}`, id))
	for _, c := range [][2]string{{"dead.replay", `{"all":true,"dryRun":true}`},
		{"schedules.pause", `{"worker":"w","name":"night"}`}} {
		_, failure := askAsOwner(t, h.nc, "acme", c[0], c[1])
		require.Empty(t, failure)
	}
	_, failure = h.control("dead.edit", `{"id":9999,"body":"x"}`)
	require.NotEmpty(t, failure, "it changes nothing")
	_, failure = askAsOwner(t, h.nc, "acme", "schedules.pause", `{"worker":"beta/w","name":"night"}`)
	require.NotEmpty(t, failure, "neither does this")
	h.ask("dead.list", "")

	type brief struct{ source, owner, action, request, claims string }
	var got []brief
	for _, r := range h.changes() {
		require.Equal(t, inventory.Node(), r.Node)
		got = append(got, brief{r.Source, r.Owner, r.Action, string(r.Request), r.Claims})
	}
	require.Equal(t, []brief{
		{audit.Control, "acme", "owners.set", `{"owner":"acme","policy":{"weight":2}}`, ""},
		{audit.Control, "acme", "owners.rm", `{"owner":"acme"}`, ""},
		{audit.Control, "acme", "schedules.pause", `{"name":"night","worker":"acme/w"}`, ""},
		{audit.Control, "acme", "schedules.resume", `{"name":"night","worker":"acme/w"}`, "ada@host"},
		{audit.Control, "acme", "dead.edit", fmt.Sprintf(`{"id":%d,"with":["body"]}`, id), ""},
		{audit.OwnerAPI, "acme", "dead.replay", `{"all":true,"dryRun":true}`, ""},
		{audit.OwnerAPI, "acme", "schedules.pause", `{"name":"night","worker":"w"}`, ""},
	}, got)

	// The owner sees what was done to its own, and so do operators.
	text, failure := askAsOwner(t, h.nc, "acme", "audit.list", "")
	require.Empty(t, failure)
	require.Contains(t, text, `"action":"owners.set"`)
	text, failure = askAsOwner(t, h.nc, "beta", "audit.list", "")
	require.Empty(t, failure)
	require.Equal(t, `{"changes":[]}`, text)
	page := h.ask("audit.list", `{"limit":3}`)
	require.Len(t, page["changes"], 3)
	require.Len(t, h.ask("audit.list", fmt.Sprintf(`{"after":%v,"owner":"acme"}`, page["next"]))["changes"], 4)
	_, failure = h.control("audit.list", `{"since":"x"}`)
	require.Contains(t, failure, `400 since "x"`)
}

// A drain is recorded before the process ends.
func TestADrainIsRecorded(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	second := openFleet(t, withToken, func(c *config.Config) { c.NatsURL = h.fleet.URL() })
	second.control("drain", `{"all":true}`)
	second.stop()
	require.Eventually(t, func() bool {
		all := h.changes()
		return len(all) == 1 && all[0].Action == "drain" && all[0].Source == audit.Control
	}, patience, 10*time.Millisecond)
}
