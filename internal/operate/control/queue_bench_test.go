package control

import (
	"flag"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

var waitingEvents = flag.Int("waiting", 20_000, "events that wait, for BenchmarkEvents")

// BenchmarkEvents looks at one event among many that wait: by its ref, by its ID, and at a page of all.
func BenchmarkEvents(b *testing.B) {
	nc := natstest.Connect(b, natstest.Start(b))
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(4000))
	require.NoError(b, err)
	cfg := consumer.DefaultConfig()
	cfg.Node = "bench"
	require.NoError(b, consumer.CreateAssets(b.Context(), js, cfg, nc.MaxPayload()))
	o := &Server{Operations: Operations{nc: nc, js: js, subjects: events.DefaultPrefix}}
	for i := range *waitingEvents {
		m := &nats.Msg{Subject: o.subjects.Event(events.Task, "acme", "w"), Data: make([]byte, 200),
			Header: nats.Header{events.HeaderEventID: {fmt.Sprint("id", i)}}}
		_, err := js.PublishMsgAsync(m, jetstream.WithStallWait(1<<40))
		require.NoError(b, err)
	}
	<-js.PublishAsyncComplete()
	s, err := js.Stream(b.Context(), events.StreamEvents)
	require.NoError(b, err)
	for _, id := range []string{fmt.Sprint("lane:", s.CachedInfo().State.LastSeq), fmt.Sprint("id", *waitingEvents-1)} {
		b.Run(fmt.Sprintf("show/%.2s", id), func(b *testing.B) {
			for b.Loop() {
				q, err := o.showEvent(b.Context(), ShowEvent{Owner: "acme", ID: id})
				require.NoError(b, err)
				require.Equal(b, fmt.Sprint("id", *waitingEvents-1), q.ID)
			}
		})
	}
	b.Run("page", func(b *testing.B) {
		for b.Loop() {
			page, err := o.listEvents(b.Context(), ListEvents{Owner: "acme", Limit: 1000})
			require.NoError(b, err)
			require.Len(b, page.Events, 1000)
		}
	})
}
