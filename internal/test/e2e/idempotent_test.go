package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// "idempotent": true in the manifest: an event that has succeeded is answered from its stored result. A later version
// may remove the setting.
func TestManifestMakesAWorkerIdempotent(t *testing.T) {
	t.Parallel()
	h := openFleet(t)
	code := `let n = 0; export default { task: (e) => ({ run: ++n, attempt: e.attempt }) }`
	w := h.deploy("acme", "pay", code, `{"idempotent": true}`)
	require.True(t, w.Idempotent)
	first := h.reply(h.send(events.Task, "acme/pay", "{}", events.HeaderEventID, "order-1"))
	require.JSONEq(t, `{"success":true,"data":{"run":1,"attempt":1}}`, string(first.Body))
	h.settled()
	again := h.reply(h.send(events.Task, "acme/pay", "{}", events.HeaderEventID, "order-1"))
	require.Equal(t, first, again)
	h.settled()

	h.deploy("acme", "pay", code+"\n// again")
	other := h.reply(h.send(events.Task, "acme/pay", "{}", events.HeaderEventID, "order-1"))
	require.Equal(t, 1, other.Attempt)
	require.NotEqual(t, first.Version, other.Version, "it ran")
}
