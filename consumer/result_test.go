package consumer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// A second event of the same id is answered as the first was, with its body, status and attempt, and not run.
func TestIdempotentWorkersEventsRunOnce(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.Catalog = idempotent("acme")
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		s, ok := ack(e)
		s.Reply = &events.Reply{
			Status: 201, Headers: []string{"x-run", e.ID}, Body: append([]byte("first "), e.Body...), EventID: e.ID,
			Attempt: e.Attempt, Version: "1-abc", Duration: time.Millisecond,
		}
		switch string(e.Body) {
		case "fails":
			s.Reply = e.FailureReply(events.Fail(events.ReasonException, "boom"))
			s.Outcome.Failure = s.Reply.Failure
		case "large":
			s.Reply.Body = make([]byte, nc.MaxPayload()-600)
		}
		return s, ok
	}}
	start(t, nc, cfg, d)
	to, sub := inbox(t, nc)
	send := func(kind events.Kind, owner, id, body string) *events.Reply {
		t.Helper()
		h := nats.Header{events.HeaderReplyTo: {to}}
		if id != "" {
			h.Set(events.HeaderEventID, id)
		}
		publish(t, nc, kind, owner, h, body)
		m, err := sub.NextMsg(patience)
		require.NoError(t, err)
		eventuallyStored(t, js, events.StreamEvents, 0) // it has ended, not only answered
		r, err := events.DecodeReply(events.Header(m.Header), m.Data)
		require.NoError(t, err)
		return r
	}
	ran := func() int { return len(d.events()) }

	first := send(events.Task, "acme", "order-1", "a")
	require.Equal(t, "first a", string(first.Body))
	require.Equal(t, first, send(events.Task, "acme", "order-1", "b"), "the result of the first")
	require.Equal(t, 1, ran())
	require.Equal(t, "first c", string(send(events.Fetch, "acme", "order-1", "c").Body), "of another kind")
	require.Equal(t, 201, send(events.Fetch, "acme", "order-1", "d").Status)
	require.Equal(t, "first e", string(send(events.Task, "acme", "order-2", "e").Body))
	require.Equal(t, 3, ran())

	require.Equal(t, "first f", string(send(events.Task, "other", "order-1", "f").Body))
	require.Equal(t, "first g", string(send(events.Task, "other", "order-1", "g").Body), "a worker that is not idempotent")
	require.Equal(t, "first h", string(send(events.Task, "acme", "", "h").Body))
	require.Equal(t, "first i", string(send(events.Task, "acme", "", "i").Body), "no ids")
	require.Equal(t, 7, ran())

	require.NotNil(t, send(events.Fetch, "acme", "order-3", "fails").Failure)
	require.Equal(t, "first j", string(send(events.Fetch, "acme", "order-3", "j").Body), "what failed is no result")
	require.Equal(t, 9, ran())

	lines, err := nc.SubscribeSync("pinwheel.logs.acme.w")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	require.Greater(t, len(send(events.Fetch, "acme", "order-4", "large").Body), 1<<19)
	line, err := lines.NextMsg(patience)
	require.NoError(t, err)
	require.Contains(t, string(line.Data), fmt.Sprintf(`"text":"the result has %d bytes and is too large to be kept: a client that asks for it again gets a failure, too-large"`, nc.MaxPayload()-600))
	again := send(events.Fetch, "acme", "order-4", "k")
	require.Equal(t, events.ReasonTooLarge, again.Failure.Reason, "finished, but the reply is not kept")
	require.Equal(t, 10, ran())
}

// A reply that is sent before waitUntil is the result, too, and so is the reply of a watched event. An event without a
// Reply-To leaves a result for clients that ask later.
func TestIdempotentResultOfAnEarlyReply(t *testing.T) {
	t.Parallel()
	d := &dispatcher{}
	d.handle = func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		s, _ := echo(e)
		d.settle([]lifecycle.Settlement{{Event: e, Reply: s.Reply}})
		s.Reply = nil
		return s, true
	}
	resultIsKept(t, d, 1)
}

func TestIdempotentResultOfAWatchedEvent(t *testing.T) {
	t.Parallel()
	resultIsKept(t, &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if !e.Watched {
			return lifecycle.Settlement{Event: e, Order: lifecycle.Watch}, true
		}
		return echo(e)
	}}, 2)
}

func resultIsKept(t *testing.T, d *dispatcher, submits int) {
	t.Helper()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.Catalog = idempotent("acme")
	start(t, nc, cfg, d)
	publish(t, nc, events.Task, "acme", nats.Header{events.HeaderEventID: {"x"}}, "early")
	eventuallyStored(t, js, events.StreamEvents, 0)
	to, sub := inbox(t, nc)
	publish(t, nc, events.Task, "acme", nats.Header{events.HeaderEventID: {"x"}, events.HeaderReplyTo: {to}}, "late")
	m, err := sub.NextMsg(patience)
	require.NoError(t, err)
	require.Equal(t, "early", string(m.Data))
	require.Len(t, d.events(), submits)
}

// Message ids count for the whole stream: calls carry their owner's name, so that no owner can take another's.
func TestMessageIDsOfCallsAreTheOwners(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	start(t, nc, testConfig(), &dispatcher{handle: echo})
	for i, owner := range []string{"a", "b"} {
		m := nats.NewMsg(subjects.Call(events.Task, owner, "w"))
		m.Header.Set(events.HeaderMsgID, "same")
		m.Data = []byte(fmt.Sprint(i))
		answer, err := nc.RequestMsg(m, patience)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(i), string(answer.Data))
		require.Equal(t, "same", answer.Header.Get(events.HeaderEventID))
	}
}

// Header names are case-insensitive in calls, too: an id that the caller sets stays, in any case, and each header may
// appear once.
func TestIDsOfCalls(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	d := &dispatcher{handle: echo}
	start(t, nc, testConfig(), d)
	ask := func(h nats.Header) (id, failure string) {
		answer, err := nc.RequestMsg(&nats.Msg{Subject: subjects.Call(events.Task, "acme", "w"), Header: h,
			Data: []byte("1")}, patience)
		require.NoError(t, err)
		return answer.Header.Get(events.HeaderEventID), answer.Header.Get(events.HeaderError)
	}
	for i, c := range []struct {
		header      nats.Header
		id, failure string
	}{
		{nats.Header{"Nats-Msg-Id": {"m0"}}, "m0", ""},
		{nats.Header{"nats-msg-id": {"m1"}}, "m1", ""},
		{nats.Header{"Nats-Msg-Id": {"m2"}, "Event-Id": {"e2"}}, "e2", ""},
		{nats.Header{"Nats-Msg-Id": {"m3"}, "event-id": {"e3"}}, "e3", ""},
		{nats.Header{"NATS-MSG-ID": {"m4"}, "EVENT-ID": {"e4"}}, "e4", ""},
		{nats.Header{"Nats-Msg-Id": {"m5"}, "event-id": {""}}, "m5", ""},
		{nats.Header{"Nats-Msg-Id": {"m6"}, "nats-msg-id": {"m6"}}, "", "malformed: header Nats-Msg-Id does not appear once"},
		{nats.Header{"Nats-Msg-Id": {"m7", "n7"}, "event-id": {"e7"}}, "e7", "malformed: header Nats-Msg-Id does not appear once"},
		{nats.Header{"Nats-Msg-Id": {"m8"}, "event-id": {"e8"}, "Event-Id": {"e8"}}, "m8",
			"malformed: header Event-Id does not appear once"},
	} {
		id, failure := ask(c.header)
		require.True(t, strings.HasPrefix(failure, c.failure) && (failure == "") == (c.failure == ""), "%d: %s", i, failure)
		if c.failure == "" || c.id != "m8" {
			require.Equal(t, c.id, id, i)
		}
	}
	// A call whose id was stored already is answered so.
	for _, again := range []nats.Header{{"Nats-Msg-Id": {"m0"}}, {"nats-msg-id": {"m4"}}} {
		id, failure := ask(again)
		require.Contains(t, failure, "malformed: header Nats-Msg-Id")
		require.Contains(t, failure, "is stored already")
		require.NotEmpty(t, id)
	}
	require.Len(t, d.events(), 6)
}

// An id that comes again after the window is another event; Config.Duplicates is the window.
func TestDuplicatesWindow(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.Duplicates = 300 * time.Millisecond
	d := &dispatcher{handle: ack}
	start(t, nc, cfg, d)
	h := nats.Header{events.HeaderMsgID: {"acme:1"}}
	publish(t, nc, events.Task, "acme", h, "first")
	publish(t, nc, events.Task, "acme", h, "again")
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Len(t, d.events(), 1)
	require.Eventually(t, func() bool { publish(t, nc, events.Task, "acme", h, "later"); return len(d.events()) == 2 },
		patience, 50*time.Millisecond)

	cfg.Duplicates = time.Millisecond
	require.ErrorContains(t, cfg.Validate(), "Duplicates is 1ms: it is 100ms to 24h")
	require.True(t, strings.HasPrefix(subjects.Result(&d.events()[0].Event), "pinwheel.result.acme.w.task."))
}

// A server that starts again knows the ids of events that wait, and has forgotten those of events that have ended,
// however it ended. A worker that is idempotent runs such an event once all the same.
func TestMessageIDsAfterARestartOfTheServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kill, once bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			srv := natstest.StartAlone(t, natstest.StoreDir(t), 0)
			cfg := testConfig()
			if c.once {
				cfg.Catalog = idempotent("acme")
			}
			id := func(name string) nats.Header { return nats.Header{events.HeaderMsgID: {"acme:" + name}} }
			onlyEnded := func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
				if string(e.Body) == "waits" {
					return lifecycle.Settlement{}, false
				}
				return ack(e)
			}
			connect := func() (*nats.Conn, *dispatcher, *fleet) {
				nc, err := natstest.Dial(srv.URL())
				require.NoError(t, err)
				t.Cleanup(nc.Close)
				d := &dispatcher{handle: onlyEnded}
				return nc, d, start(t, nc, cfg, d)
			}
			nc, d, f := connect()
			ended := publish(t, nc, events.Task, "acme", id("ended"), "ended")
			waits := publish(t, nc, events.Task, "acme", id("waits"), "waits")
			require.Equal(t, ended, publish(t, nc, events.Task, "acme", id("ended"), "ended"))
			require.Eventually(t, func() bool { return len(d.events()) == 2 }, patience, time.Millisecond)
			eventuallyStored(t, jetStream(t, nc), events.StreamEvents, 1)
			f.halt()
			nc.Close()
			if c.kill {
				srv.Kill()
			} else {
				srv.Stop()
			}
			srv.Start(0)

			nc, d, _ = connect()
			require.Equal(t, waits, publish(t, nc, events.Task, "acme", id("waits"), "waits"), "its id is known")
			require.Greater(t, publish(t, nc, events.Task, "acme", id("ended"), "ended"), waits, "its id is not")
			eventuallyStored(t, jetStream(t, nc), events.StreamEvents, 1)
			again := slices.ContainsFunc(d.events(), func(e *lifecycle.Delivery) bool { return string(e.Body) == "ended" })
			require.Equal(t, !c.once, again)
		})
	}
}
