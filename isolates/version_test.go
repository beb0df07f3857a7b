package isolates

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A worker knows which of its versions runs, and cannot change what it is told.
func TestVersionBinding(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cpu = ample
	w := worker("w", `export default { async fetch(r, env) {
		try { env.V.id = "other" } catch {}
		return Response.json([env.V, Object.isFrozen(env.V), new Date(env.V.timestamp).toISOString() === env.V.timestamp]);
	} }`)
	w.Version, w.VersionBinding, w.Tag, w.DeployedAt = "7-0123456789ab", "V", `v1 "ü"`, time.Date(2026, 3, 4, 5, 6, 7,
		89e6, time.FixedZone("", 3600))
	o := b.run(w, fetch("GET", "http://w/", ""))
	require.NotNil(t, o.reply, o.end.Failure)
	require.JSONEq(t, `[{"id":"7-0123456789ab","tag":"v1 \"ü\"","timestamp":"2026-03-04T04:06:07.089Z"},true,true]`, string(o.reply.Body))
}
