package fleet

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// A process that V8 has damaged too often drains, says why, and ends with an error.
func TestUnhealthyProcessDrainsAndEnds(t *testing.T) {
	t.Parallel()
	const patience = time.Minute
	runs, letGo := make(chan struct{}), make(chan struct{})
	gate := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(runs)
		<-letGo
	}))
	t.Cleanup(gate.Close)
	cfg := config.Default()
	cfg.NatsPort, cfg.Data, cfg.AdminAddr = -1, natstest.StoreDir(t), ""
	cfg.DrainTimeout, cfg.AllowPrivateAddresses = patience, config.List{"127.0.0.1"}
	f, err := Open(cfg, zerolog.Nop())
	require.NoError(t, err)
	ill := make(chan struct{})
	f.condition.sick = func() error {
		select {
		case <-ill:
			return errors.New("V8 has lost 4 threads")
		default:
			return nil
		}
	}
	done := make(chan error, 1)
	go func() { done <- f.Run(context.Background()) }()
	<-f.Ready()

	nc, err := natstest.Dial(f.URL())
	require.NoError(t, err)
	defer nc.Close()
	path := filepath.Join(t.TempDir(), "slow.js")
	require.NoError(t, os.WriteFile(path, []byte(
		`export default { fetch: async () => (await fetch("`+gate.URL+`"), new Response("done")) }`), 0o600))
	check, err := f.OpenChecker()
	require.NoError(t, err)
	defer check.Close()
	d, err := f.Workers().Deploy(t.Context(), deploy.Request{Owner: "acme", Path: path}, check)
	require.NoError(t, err)
	_, err = control.NewClient(nc, events.DefaultPrefix, "").Await(t.Context(), d.Worker.Target(), d.Deployment)
	require.NoError(t, err)
	replies, err := nc.SubscribeSync(nc.NewInbox())
	require.NoError(t, err)
	event := nats.NewMsg(events.Subjects(events.DefaultPrefix).Event(events.Fetch, "acme", "slow"))
	event.Header.Set(events.HeaderReplyTo, replies.Subject)
	require.NoError(t, nc.PublishMsg(event))

	<-runs
	close(ill)
	require.ErrorContains(t, f.CheckReady(context.Background()), "V8 has lost")
	require.Eventually(t, func() bool { return f.Stats().Dispatch.Draining }, patience, time.Millisecond)
	close(letGo)
	reply, err := replies.NextMsg(patience)
	require.NoError(t, err)
	require.Equal(t, "done", string(reply.Data), "what runs finishes")
	require.EqualError(t, <-done, "V8 has lost 4 threads")
}
