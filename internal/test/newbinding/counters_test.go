//go:build counters

package newbinding_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

const source = `export default { async fetch(request, env) {
	const seen = [await env.HITS.add(2), await env.HITS.add(3), await env.OTHER.add(-1)];
	for (const wrong of [() => env.HITS.add(), () => env.HITS.add(1.5), () => Object.getPrototypeOf(env.HITS).add.call({}, 1)]) {
		try { await wrong(); seen.push("?"); } catch (e) { seen.push(e.name + ": " + e.message); }
	}
	let calls = 4;
	try { for (;; calls++) await env.HITS.add(0); } catch (e) { seen.push(calls + " " + e.message); }
	return Response.json(seen);
} }`

// TestCounters deploys a worker with the binding, and reads what it sees. It needs the overlay.
func TestCounters(t *testing.T) {
	f := fleettest.Start(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("main.js", source)
	write("pinwheel.json", `{"name": "w", "main": "main.js", "counters": {"HITS": "hits", "OTHER": "other"}}`)
	f.Deploy(t, dir, "--owner", "acme")
	r := f.Pinwheel("send", "fetch", "acme/w")
	require.Zero(t, r.Code, r.Err)
	require.JSONEq(t, `[2, 5, -1, "TypeError: Counter.add: 1 argument required, but only 0 present",
		"Error: Counter add failed: 400 n is a whole number of at most 32 bits", "TypeError: Illegal invocation: this is not a Counter",
		"50 too many calls of counters bindings: at most 50 per event"]`, r.Out)

	write("pinwheel.json", `{"name": "w", "main": "main.js", "counters": {"HITS": "no counter"}}`)
	r = f.Pinwheel("deploy", dir, "--owner", "acme")
	require.Equal(t, 1, r.Code, r.Err)
	require.Contains(t, r.Err, `pinwheel.json:1:47: counters.HITS is no counter: counter "no counter"`)
	r = f.Pinwheel("workers", "show", "acme/w")
	require.Contains(t, r.Out, "HITS is hits")
	r = f.Pinwheel("schema", "manifest")
	require.Contains(t, r.Out, `"counters"`)
	r = f.Pinwheel("send", "fetch", "other/w")
	require.NotZero(t, r.Code, "another owner has no such worker")
}
