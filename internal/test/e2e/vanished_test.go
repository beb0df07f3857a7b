package e2e

import (
	"bytes"
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// beginFleet opens a fleet's process on a server and runs it. It need not take events.
func beginFleet(t *testing.T, url string) *fleet.Process {
	t.Helper()
	cfg := testConfig(t)
	cfg.NatsURL = url
	f, err := fleet.Open(cfg, zerolog.Nop())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	return f
}

// The bucket of workers is emptied. Events continue in the running processes. A process that starts takes none, because
// it has no workers, so that no event becomes a dead letter.
func TestEmptiedBucketHarmsNoEvent(t *testing.T) {
	t.Parallel()
	for name, empty := range map[string]func(t *testing.T, f *fleet.Process, js jetstream.JetStream){
		"purged": func(t *testing.T, _ *fleet.Process, js jetstream.JetStream) {
			s, err := js.Stream(t.Context(), "KV_"+deploy.DefaultBucket)
			require.NoError(t, err)
			require.NoError(t, s.Purge(t.Context()))
		},
		"deleted": func(t *testing.T, f *fleet.Process, js jetstream.JetStream) {
			require.NoError(t, js.DeleteKeyValue(t.Context(), deploy.DefaultBucket))
			var advice bytes.Buffer
			cli.MainWith(f.Config(), []string{"doctor"}, strings.NewReader(""), &advice, &advice)
			require.Contains(t, advice.String(), "deploy all workers again ('pinwheel deploy' creates the bucket), before any process starts")
			_, err := deploy.Open(t.Context(), js, deploy.Config{})
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := natstest.Start(t)
			f := beginFleet(t, srv.URL())
			<-f.Ready()
			h := &testFleet{t: t, fleet: f}
			h.connect(srv.URL())
			const echo = `export default { fetch: async r => new Response(await r.text()) }`
			h.deploy("acme", "echo", echo)
			stop := h.keepFlowing("acme/echo")
			empty(t, f, h.js)
			require.Eventually(t, func() bool { return f.Stats().Vanished == 1 }, patience, 10*time.Millisecond)
			var doctor bytes.Buffer
			require.NotZero(t, cli.MainWith(f.Config(), []string{"doctor"}, strings.NewReader(""), &doctor, &doctor))
			require.Contains(t, doctor.String(), "1 workers still run although their records are gone")
			late := beginFleet(t, srv.URL())
			missing := regexp.MustCompile("the worker bucket was emptied|another process runs 1 workers")
			require.Eventually(t, func() bool {
				err := late.CheckReady(t.Context())
				return err != nil && missing.MatchString(err.Error())
			}, patience, 10*time.Millisecond)
			h.deploy("acme", "echo", echo)
			select {
			case <-late.Ready():
			case <-time.After(patience):
				t.Fatal("it takes no events though the worker is there again")
			}
			require.NoError(t, late.CheckReady(t.Context()))
			stop()
			require.Empty(t, h.dead())
			require.Equal(t, "x", string(h.reply(h.send(events.Fetch, "acme/echo", "x")).Body))
		})
	}
}

// A fleet that never had workers, and a fleet whose workers were all removed, start at once.
func TestProcessesStartWithoutWorkers(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	f := beginFleet(t, srv.URL())
	<-f.Ready()
	h := &testFleet{t: t, fleet: f}
	h.connect(srv.URL())
	h.deploy("acme", "echo", `export default { fetch: async r => new Response(await r.text()) }`)
	require.NoError(t, f.Workers().Remove(t.Context(), "acme", "echo"))
	late := beginFleet(t, srv.URL())
	select {
	case <-late.Ready():
	case <-time.After(patience):
		t.Fatal("it does not start")
	}
}
