package control

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// An event is found by its ID, whichever header has it, among others that mention the ID. The owner that asks pays for
// each event that is read; for what an operator asks nobody pays.
func TestASearchFindsAnyIDAndIsPaid(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	cfg := consumer.DefaultConfig()
	cfg.Node = "test"
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	s := &Server{Operations: Operations{nc: nc, js: js, subjects: events.DefaultPrefix},
		gate: newGate(func(ownerRequest) {}, prometheus.NewRegistry())}
	t.Cleanup(s.gate.queue.Close)
	publish := func(h nats.Header) {
		_, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: s.subjects.Event(events.Task, "acme", "w"), Header: h})
		require.NoError(t, err)
	}
	const others = 2500 // more than two requests bring
	for i := range others {
		_, err := js.PublishMsgAsync(&nats.Msg{Subject: s.subjects.Event(events.Task, "acme", "w"),
			Header: nats.Header{"Customer": {"wanted"}, events.HeaderEventID: {fmt.Sprint("other", i)}}})
		require.NoError(t, err)
	}
	<-js.PublishAsyncComplete()
	publish(nats.Header{events.HeaderEventID: {" wanted "}})
	publish(nats.Header{"nats-msg-id": {"alias"}})
	publish(nats.Header{events.HeaderMsgID: {"deduplicated"}})
	publish(nats.Header{events.HeaderMsgID: {"hidden"}, events.HeaderEventID: {"shown"}})

	s.gate.charge("acme", 10*ownerTimeBurst) // so that it never has all that it may have
	paid := func(do func()) time.Duration {
		from := time.Now()
		before := s.gate.time.Left("acme", from)
		do()
		to := time.Now()
		earned := to.Sub(from).Seconds() * float64(ownerTime.Microseconds())
		return time.Duration((before + earned - s.gate.time.Left("acme", to)) * float64(time.Microsecond))
	}
	show := func(by, id string) (QueuedEvent, error) {
		return s.showEvent(t.Context(), ShowEvent{asker: asker{by}, Owner: "acme", ID: id})
	}
	for _, id := range []string{"wanted", "alias", "deduplicated", "shown"} {
		q, err := show("", id)
		require.NoError(t, err, id)
		require.Equal(t, id, q.ID)
	}
	search := func(by string) func() {
		return func() {
			for _, id := range []string{"hidden", "want", "wanted2", "nothing"} {
				_, err := show(by, id)
				require.ErrorContains(t, err, "no event", id)
			}
		}
	}
	require.InDelta(t, 0, paid(search("")), float64(time.Millisecond))
	require.InDelta(t, 4*(others+4)*searchTime, paid(search("acme")), float64(time.Millisecond))
	require.Equal(t, 3*searchTime, paidFor(1, 2*searchSize), "bodies come too")
}
