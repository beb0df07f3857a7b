package consumer_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

func TestReplyTooLargeBecomesAFailureReply(t *testing.T) {
	t.Parallel()
	t.Run("kept", func(t *testing.T) {
		replyTooLarge(t, func(nc *nats.Conn, r *events.Reply) { r.Body = make([]byte, nc.MaxPayload()+1) })
	})
	t.Run("dropped", func(t *testing.T) {
		replyTooLarge(t, func(nc *nats.Conn, r *events.Reply) { r.Body, r.Dropped = nil, int(nc.MaxPayload()+1) })
	})
}

func replyTooLarge(t *testing.T, grow func(*nats.Conn, *events.Reply)) {
	nc := connect(t)
	start(t, nc, testConfig(), &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		s, ok := echo(e)
		grow(nc, s.Reply)
		return s, ok
	}})
	lines, err := nc.SubscribeSync("pinwheel.logs.acme.w")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	to, sub := inbox(t, nc)
	publish(t, nc, events.Fetch, "acme", nats.Header{"Reply-To": {to}, "Event-Id": {"e1"}}, "x")
	m, err := sub.NextMsg(patience)
	require.NoError(t, err)
	r, err := events.DecodeReply(events.Header(m.Header), m.Data)
	require.NoError(t, err)
	require.Equal(t, 500, r.Status)
	require.Equal(t, events.ReasonTooLarge, r.Failure.Reason)
	require.Contains(t, r.Failure.Message, "the response has 1048577 bytes")
	line, err := lines.NextMsg(patience)
	require.NoError(t, err)
	require.Contains(t, string(line.Data), `"eventId":"e1","attempt":1,"level":"error","text":"failed: too-large: the response has 1048577 bytes and its headers; a message has at most 1048576; the requester got that in its place`)
	eventuallyStored(t, jetStream(t, nc), events.StreamEvents, 0)
}

func TestRepliesGoOnlyWhereTheyMay(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	d := &dispatcher{handle: echo}
	start(t, nc, testConfig(), d)
	spy, err := nc.SubscribeSync("private.>")
	require.NoError(t, err)
	for _, to := range []string{"private.x", "$JS.API.STREAM.DELETE.PINWHEEL_EVENTS", "pinwheel.events.task.b.w",
		"_INBOX.*", "_INBOX.>"} {
		publish(t, nc, events.Task, "acme", nats.Header{"Reply-To": {to}}, "x")
	}
	eventuallyStored(t, js, events.StreamDead, 5)
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.NoError(t, nc.Flush())
	n, _, err := spy.Pending()
	require.NoError(t, err)
	require.Zero(t, n)
	require.Empty(t, d.events())
}

func TestEarlyReplyLeavesTheEventHeld(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	finish := make(chan struct{})
	d := &dispatcher{}
	d.handle = func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		s, _ := echo(e)
		s.Outcome = lifecycle.Outcome{}
		d.settle([]lifecycle.Settlement{s})
		<-finish
		return ack(e)
	}
	start(t, nc, testConfig(), d)
	to, sub := inbox(t, nc)
	publish(t, nc, events.Fetch, "acme", nats.Header{"Reply-To": {to}}, "x")
	_, err := sub.NextMsg(patience)
	require.NoError(t, err)
	require.Equal(t, 1, stored(t, js, events.StreamEvents))
	close(finish)
	eventuallyStored(t, js, events.StreamEvents, 0)
}

func TestCallBridge(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	d := &dispatcher{handle: echo}
	start(t, nc, testConfig(), d)
	m, err := nc.RequestMsg(&nats.Msg{
		Subject: subjects.Call(events.Fetch, "acme", "w"), Data: []byte("hi"),
		Header: nats.Header{
			"Nats-Msg-Id": {"m1"}, "Nats-Rollup": {"all"}, "Status": {"409"}, "reply-to": {"_INBOX.other"},
			"Reply-To": {"_INBOX.other"}, "X-Mine": {"1"},
		},
	}, patience)
	require.NoError(t, err)
	require.Equal(t, "hi", string(m.Data))
	require.Equal(t, "m1", m.Header.Get(events.HeaderEventID))
	e := d.events()[0]
	require.Equal(t, "1", e.Header.Get("X-Mine"))
	require.Equal(t, "acme:m1", e.Header.Get("Nats-Msg-Id"))
	require.Empty(t, e.Header["Status"])
	require.Empty(t, e.Header["reply-to"])

	for subject, status := range map[string]string{
		"pinwheel.call.fetch.acme": "400", "pinwheel.call.fetch.acme.w.x": "400",
		"pinwheel.call.nokind.acme.w": "400", "pinwheel.call.fetch.ac!me.w": "400",
	} {
		m, err := nc.Request(subject, nil, patience)
		require.NoError(t, err, subject)
		require.Equal(t, status, m.Header.Get(events.HeaderStatus), subject)
	}
	m, err = nc.Request("pinwheel.call.task.acme", nil, patience)
	require.NoError(t, err)
	require.Contains(t, m.Header.Get(events.HeaderError), "malformed: ")

	require.NoError(t, nc.Publish(subjects.Call(events.Task, "acme", "w"), []byte("nobody waits")))
	require.Eventually(t, func() bool { return len(d.events()) == 2 }, patience, time.Millisecond)
	// A reply subject that is not allowed: neither stored nor answered.
	require.NoError(t, nc.PublishRequest(subjects.Call(events.Task, "acme", "w"), "private.x", []byte("no")))
	require.NoError(t, nc.Publish(subjects.Call(events.Task, "acme", "w"), []byte("last")))
	require.Eventually(t, func() bool { return len(d.events()) == 3 }, patience, time.Millisecond)
	require.Equal(t, "last", string(d.events()[2].Body))
	eventuallyStored(t, js, events.StreamEvents, 0)
}

// JetStream stores a message id once. A client that repeats it must not wait for a reply that is never sent.
func TestRepeatedCallIsAnswered(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	d := &dispatcher{handle: echo}
	start(t, nc, testConfig(), d)
	for i, status := range []string{"200", "400"} {
		m, err := nc.RequestMsg(&nats.Msg{
			Subject: subjects.Call(events.Fetch, "acme", "w"), Data: []byte("hi"), Header: nats.Header{"Nats-Msg-Id": {"m1"}},
		}, patience)
		require.NoError(t, err)
		require.Equal(t, status, m.Header.Get(events.HeaderStatus), "call %d: %s", i, m.Data)
	}
	require.Len(t, d.events(), 1)
}

func TestCallIsRefusedWhenTheStreamIsFull(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	cfg := testConfig()
	cfg.MaxBytes = 1 << 20
	start(t, nc, cfg, &dispatcher{handle: never})
	body := make([]byte, 400<<10)
	js := jetStream(t, nc)
	for n := 1; n <= 2; n++ { // a look at the stream meanwhile may count the first one twice until the next look
		require.Eventually(t, func() bool {
			if stored(t, js, events.StreamEvents) >= n {
				return true
			}
			require.NoError(t, nc.Publish(subjects.Call(events.Task, "acme", "w"), body))
			require.NoError(t, nc.Flush())
			return stored(t, js, events.StreamEvents) >= n
		}, patience, 50*time.Millisecond)
	}
	for owner, want := range map[string]struct {
		status string
		reason events.Reason
	}{"acme": {"429", events.ReasonRate}, "beta": {"503", events.ReasonUnavailable}} { // acme has more than is free
		m, err := nc.Request(subjects.Call(events.Fetch, owner, "w"), body, patience)
		require.NoError(t, err)
		require.Equal(t, want.status, m.Header.Get(events.HeaderStatus))
		require.Contains(t, m.Header.Get(events.HeaderError), string(want.reason))
	}
}
