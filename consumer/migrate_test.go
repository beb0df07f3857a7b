package consumer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// unmarked makes the assets what a binary from before there were levels has made.
func unmarked(t *testing.T, js jetstream.JetStream, cfg consumer.Config, maxPayload int64) {
	t.Helper()
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, maxPayload))
	for _, a := range consumer.Assets(cfg, maxPayload) {
		switch {
		case a.Stream != nil:
			_, err := js.UpdateStream(t.Context(), *a.Stream)
			require.NoError(t, err)
		case a.Consumer != nil:
			_, err := js.UpdateConsumer(t.Context(), a.Of, *a.Consumer)
			require.NoError(t, err)
		}
	}
}

func streamConfig(t *testing.T, js jetstream.JetStream) jetstream.StreamConfig {
	t.Helper()
	s, err := js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	return s.CachedInfo().Config
}

// A fleet of the old configuration goes on while a process of the new one starts; nothing is lost, and what the new one
// changed is not taken back when an old one mends what was deleted.
func TestAssetsMoveForwardUnderLoad(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc, pub := natstest.Connect(t, srv), natstest.Connect(t, srv)
	js, cfg := jetStream(t, pub), leased(2*time.Second)
	unmarked(t, js, cfg, nc.MaxPayload())
	old := &dispatcher{handle: ack}
	start(t, nc, cfg, old)

	const n = 3000
	published := make(chan error, 1)
	go func() {
		var err error
		for i := range n {
			if _, err = js.PublishMsgAsync(&nats.Msg{Subject: subjects.Event(events.Task, fmt.Sprintf("o%d", i%40), "w"),
				Data: fmt.Append(nil, i)}, jetstream.WithStallWait(patience)); err != nil {
				break
			}
		}
		<-js.PublishAsyncComplete()
		published <- err
	}()
	newer := cfg
	newer.MaxBytes, newer.AckWait, newer.DeadLetterAge = 2*cfg.MaxBytes, 2*cfg.AckWait, 2*cfg.DeadLetterAge
	second := &dispatcher{handle: ack}
	start(t, natstest.Connect(t, srv), newer, second)
	require.NoError(t, <-published)
	require.Equal(t, cfg.MaxBytes, streamConfig(t, js).MaxBytes, "only the command changes sizes")
	require.Equal(t, fmt.Sprint(resources.Level), streamConfig(t, js).Metadata[resources.LevelKey])

	require.NoError(t, js.DeleteConsumer(t.Context(), events.StreamEvents, "lane-3"))
	require.Eventually(t, func() bool {
		_, err := js.Consumer(t.Context(), events.StreamEvents, "lane-3")
		return err == nil
	}, patience, 10*time.Millisecond)
	eventuallyStored(t, js, events.StreamEvents, 0)
	ran := map[string]bool{}
	for _, e := range append(old.events(), second.events()...) {
		ran[string(e.Body)] = true
	}
	require.Len(t, ran, n)
	require.Equal(t, cfg.MaxBytes, streamConfig(t, js).MaxBytes, "only the command changes sizes")
	c, err := js.Consumer(t.Context(), events.StreamEvents, "lane-4")
	require.NoError(t, err)
	require.Equal(t, cfg.AckWait, c.CachedInfo().Config.AckWait)
}

// A process that starts beside a fleet of a newer binary leaves its assets as they are, and works with them.
func TestOlderProcessesLeaveNewerAssetsAlone(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js, cfg := jetStream(t, nc), testConfig()
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	future := streamConfig(t, js)
	future.Metadata[resources.LevelKey], future.MaxBytes, future.Description = "99", 4*cfg.MaxBytes, "from the future"
	_, err := js.UpdateStream(t.Context(), future)
	require.NoError(t, err)
	d := &dispatcher{handle: ack}
	start(t, nc, cfg, d)
	publish(t, nc, events.Task, "acme", nil, "x")
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Equal(t, future.MaxBytes, streamConfig(t, js).MaxBytes)
	require.Equal(t, "from the future", streamConfig(t, js).Description)
}

// What JetStream cannot change keeps a process from starting, with the reason, at once.
func TestAssetsThatCannotBeMendedKeepAProcessFromStarting(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js, cfg := jetStream(t, nc), testConfig()
	wrong := jetstream.StreamConfig{Name: events.StreamEvents, Subjects: []string{subjects.AllEvents(), subjects.Anchor()},
		AllowMsgTTL: true}
	_, err := js.CreateStream(t.Context(), wrong)
	require.NoError(t, err)
	c, err := consumer.New(cfg, nc, &dispatcher{handle: ack}, testLog(t), nil)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = c.Run(ctx, ctx)
	require.ErrorContains(t, err, "stream PINWHEEL_EVENTS: allow_msg_ttl is true and should be not set, retention is limits and should be workqueue")
}
