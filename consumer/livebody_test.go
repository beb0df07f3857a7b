package consumer_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// bodyRead is the result of reading a live body.
type bodyRead struct {
	text string
	err  error
}

func readLive(e *lifecycle.Delivery, came func(part string)) (r bodyRead) {
	for i := 0; ; i++ {
		part, err := e.Parts.Read(context.Background(), i)
		if errors.Is(err, io.EOF) {
			return r
		}
		if err != nil {
			r.err = err
			return r
		}
		r.text += string(part)
		came(string(part))
	}
}

var live = nats.Header{"Body-Id": {"a"}, "Body-Parts": {"*"}}

// The parts of a live body are read as they come, also without a notice. The sender is notified of the parts that were
// read. The parts are removed with their event.
func TestLiveBodiesAreReadAsTheyCome(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	got, came := make(chan bodyRead, 1), make(chan string, 10)
	start(t, nc, testConfig(), &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		got <- readLive(e, func(part string) { came <- part })
		return ack(e)
	}})
	to, sub := inbox(t, nc)
	header := nats.Header{"Reply-To": {to}, "Event-Id": {"x"}, "Body-Id": {"a"}, "Body-Parts": {"*"}}
	publish(t, nc, events.Fetch, "acme", header, "")
	told := func(n string) {
		t.Helper()
		m, err := sub.NextMsg(patience)
		require.NoError(t, err)
		require.Equal(t, nats.Header{"Event-Id": {"x"}, "Body-Read": {n}}, m.Header)
		require.Empty(t, m.Data)
	}
	_, err := sendPart(t, nc, &nats.Msg{Subject: subjects.BodyPart("acme", "a", 0), Data: []byte("one")})
	require.NoError(t, err)
	require.Equal(t, "one", <-came)
	told("1")
	_, err = js.Publish(t.Context(), subjects.StorePart("acme", "a", 1), []byte("two")) // stored without a notice
	require.NoError(t, err)
	require.Equal(t, "two", <-came)
	told("2")
	_, err = sendPart(t, nc, &nats.Msg{Subject: subjects.BodyPart("beta", "a", 2), Data: []byte("of another owner")})
	require.NoError(t, err)
	_, err = sendPart(t, nc, &nats.Msg{Subject: subjects.BodyPart("acme", "a", events.EndPart), Data: events.EncodeEnd(3)})
	require.NoError(t, err)
	_, err = sendPart(t, nc, &nats.Msg{Subject: subjects.BodyPart("acme", "a", 2), Data: []byte("three")})
	require.NoError(t, err)
	require.Equal(t, bodyRead{text: "onetwothree"}, <-got)
	eventuallyStored(t, js, events.StreamBodies, 1)
}

func TestLiveBodyThatDoesNotCome(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	cfg := testConfig()
	cfg.PartPatience = 50 * time.Millisecond
	got := make(chan bodyRead, 1)
	start(t, nc, cfg, &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		got <- readLive(e, func(string) {})
		return ack(e)
	}})
	publish(t, nc, events.Fetch, "acme", live, "")
	require.EqualError(t, (<-got).err, "part 0 of body a: it has not come within 50ms")
}

// When a process dies that reads a live body, another reads all of it, while it still comes.
func TestLiveBodyOfAProcessThatDies(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	pub := natstest.Connect(t, srv)
	js := jetStream(t, pub)
	doomed := natstest.Connect(t, srv)
	began, stuck := make(chan string, 10), make(chan struct{})
	defer close(stuck)
	start(t, doomed, shortLease(), &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		part, err := e.Parts.Read(context.Background(), 0)
		require.NoError(t, err)
		began <- string(part)
		<-stuck
		return ack(e)
	}})
	publish(t, pub, events.Fetch, "acme", live, "")
	_, err := sendPart(t, pub, &nats.Msg{Subject: subjects.BodyPart("acme", "a", 0), Data: []byte("one")})
	require.NoError(t, err)
	require.Equal(t, "one", <-began)
	doomed.Close()
	got := make(chan bodyRead, 1)
	start(t, natstest.Connect(t, srv), shortLease(),
		&dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
			got <- readLive(e, func(part string) { began <- part })
			return ack(e)
		}})
	require.Equal(t, "one", <-began)
	_, err = sendPart(t, pub, &nats.Msg{Subject: subjects.BodyPart("acme", "a", 1), Data: []byte("two")})
	require.NoError(t, err)
	_, err = sendPart(t, pub, &nats.Msg{Subject: subjects.BodyPart("acme", "a", events.EndPart),
		Data: events.EncodeEnd(2)})
	require.NoError(t, err)
	require.Equal(t, bodyRead{text: "onetwo"}, <-got)
	eventuallyStored(t, js, events.StreamBodies, 0)
}
