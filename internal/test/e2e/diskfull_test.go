package e2e

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// A nats-server that failed to write no longer answers publishers. All outputs report this and the remedy, which is a
// restart: free space alone does not help. The disk is a small one where a file system can be mounted. The test also
// runs everywhere with a limit on the file size.
func TestDiskThatIsFull(t *testing.T) {
	t.Parallel()
	t.Run("file", func(t *testing.T) {
		testDiskThatIsFull(t, t.TempDir(), 64<<10, "file too large", func() {},
			func() {})
	})
	t.Run("disk", func(t *testing.T) {
		dir := t.TempDir()
		if err := syscall.Mount("none", dir, "tmpfs", 0, "size=24m"); err != nil {
			t.Logf("NOT TESTED: nothing can be mounted here (%v), so a file system that is full is left to the other test", err)
			return
		}
		t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
		fill := filepath.Join(dir, "fill")
		testDiskThatIsFull(t, filepath.Join(dir, "js"), 0, "no space left on device", func() {
			err := os.WriteFile(fill, make([]byte, 32<<20), 0o600)
			require.ErrorIs(t, err, syscall.ENOSPC)
		}, func() { require.NoError(t, os.Remove(fill)) })
	})
}

func testDiskThatIsFull(t *testing.T, dir string, maxFile uint64, cause string, fill, free func()) {
	t.Parallel()
	server := natstest.StartAlone(t, dir, maxFile)
	h := openFleet(t, withWeb, func(c *config.Config) {
		c.NatsURL, c.NatsMonitor = server.URL(), config.List{server.Monitor()}
	})
	h.deploy("acme", "w", `export default { fetch: () => new Response("done") }`)
	h.deploy("acme", "sends", `export default {
		task() {},
		fetch: (request, env) => env.SELF.send(1).then(() => new Response("sent"), (e) => new Response(e.message)),
	}`, `{"queues": {"SELF": "sends"}}`)
	send := func(args ...string) (code int, out string) {
		var b bytes.Buffer
		code = cli.MainWith(h.fleet.Config(), append([]string{"send", "fetch", "acme/w", "--timeout", "1s"}, args...),
			strings.NewReader(""), &b, &b)
		return code, b.String()
	}
	failed := func() float64 { return h.metric("pinwheel_storage_failed", "stream", "PINWHEEL_EVENTS") }
	ready := func() bool { return h.fleet.CheckReady(context.Background()) == nil }
	require.Eventually(t, ready, patience, tick)
	fill()
	code, out, body := 0, "", strings.Repeat("x", 16<<10)
	for i := 0; i < 20 && code == 0; i++ {
		code, out = send("--data", body, "--timeout", "5m") // it does not wait for so long
	}
	says := "nats-server has stopped to store anything in PINWHEEL_EVENTS, because a write failed: " + cause
	require.Equal(t, exitFailure, code, out)
	require.Contains(t, out, "the event is not known to be stored: "+says+"; "+stored.Advice)
	var said bytes.Buffer // an owner may not ask nats-server: the fleet says it
	owner := h.fleet.Config()
	owner.Owner = "acme"
	code = cli.MainWith(owner, []string{"send", "fetch", "acme/w", "--timeout", "5m", "--data", body},
		strings.NewReader(""), &said, &said)
	require.Equal(t, exitFailure, code, said.String())
	require.Contains(t, said.String(), "the event is not known to be stored: "+says)
	require.NotContains(t, said.String(), stored.Advice, "the owner cannot follow it")

	call := func() string {
		m, err := h.nc.Request(events.Subjects(events.DefaultPrefix).Call(events.Fetch, "acme", "w"), nil, patience)
		require.NoError(t, err)
		return m.Header.Get(events.HeaderError)
	}
	require.Contains(t, call(), "unavailable: the event was not stored")
	require.Eventually(t, func() bool { return !ready() }, patience, tick)
	require.ErrorContains(t, h.fleet.CheckReady(context.Background()), says+"; "+stored.Advice)
	require.Equal(t, "unavailable: the event was not stored: "+says, call(), "and at once")
	_, heard := openWeb(t, h.fleet.HTTPAddr()).ask(http.MethodGet, "acme/sends", "/", "")
	require.Contains(t, heard, says, "a request that is not stored runs, and its handler hears it")
	require.Equal(t, 1., failed())
	code, out = runDoctor(t, h.fleet.Config())
	require.Equal(t, exitBad, code)
	require.Contains(t, out, says)
	require.Contains(t, out, "→ "+stored.Advice)
	require.Contains(t, out, "/healthz: JetStream stream '$G > PINWHEEL_EVENTS' write error: ")

	free()
	f, err := stored.Failed(t.Context(), h.nc, "PINWHEEL_EVENTS")
	require.NoError(t, err)
	require.NotNil(t, f, "room alone does not help")
	server.Kill()
	server.Start(0)
	require.Eventually(t, ready, patience, tick)
	require.Eventually(t, func() bool { code, out = send("--data", body); return code == 0 }, patience, time.Millisecond,
		out)
	require.Zero(t, failed())
}
