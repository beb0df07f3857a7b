package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// A failed fetch event without a requester leaves a dead letter, which can be replayed. A failed one with a requester
// is answered, and leaves none.
func TestFetchThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	path := filepath.Join(t.TempDir(), "w.js")
	require.NoError(t, os.WriteFile(path, []byte(`export default { async fetch(r, env, ctx) {
		switch (new URL(r.url).pathname) {
		case "/throw": throw new TypeError("no prices");
		case "/loop": for (;;);
		case "/never": await new Promise(() => {});
		case "/500": return new Response("", { status: 500 });
		case "/late": ctx.waitUntil(Promise.reject(new Error("late")));
		}
		return new Response("ok");
	} }`), 0o600))
	f.Deploy(t, path, "--owner", "acme")
	answered := f.Pinwheel("send", "fetch", "acme/w", "--path", "/throw")
	require.NotZero(t, answered.Code)
	require.Contains(t, answered.Err+answered.Out, "no prices")
	send := func(worker, path string) {
		r := f.Pinwheel("send", "fetch", "acme/"+worker, "--path", path, "--no-wait", "--id", worker+path)
		require.Zero(t, r.Code, r.Err)
	}
	for _, path := range []string{"/", "/500", "/late", "/throw", "/loop", "/never"} {
		send("w", path)
	}
	send("gone", "/")
	awaitNoEvents(t, f)
	await(t, f, 4)
	got := map[string]string{}
	for _, line := range letters(f) {
		var l struct{ EventID, Reason, Kind string }
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		require.Equal(t, "fetch", l.Kind)
		got[l.EventID] = l.Reason
	}
	require.Equal(t, map[string]string{"w/throw": "exception", "w/loop": "cpu", "w/never": "timeout",
		"gone/": "no-worker"}, got)

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t,
		os.WriteFile(path, []byte(strings.Replace(string(text), "throw new TypeError", "return new Response", 1)), 0o600))
	f.Deploy(t, path, "--owner", "acme")
	require.Zero(t, f.Pinwheel("dead", "replay", "--reason", "exception").Code)
	require.Eventually(t, func() bool { return strings.Contains(f.Pinwheel("dead", "replays").Out, "succeeded") },
		patience, tick)
	require.Len(t, letters(f), 3)
}
