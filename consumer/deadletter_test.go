package consumer_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func letters(t testing.TB, dl *deadletter.Store, f deadletter.Filter) []*events.DeadLetter {
	t.Helper()
	var all []*events.DeadLetter
	for d, err := range dl.List(context.Background(), f) {
		require.NoError(t, err)
		all = append(all, d)
	}
	return all
}

func TestDeadLetterKeepsEverything(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	start(t, nc, testConfig(), &dispatcher{handle: dead})
	h := nats.Header{
		"Event-Id": {"e1"}, "X-User": {"a", "b"}, "x-lower": {"c"}, "Content-Type": {"application/octet-stream"},
		"Status": {"409"}, "Description": {"Consumer Deleted"}, "Nats-Pin-Id": {"mine"}, "Nats-Msg-Id": {"id-1"},
		"Dead-Reason": {"mine"}, "Dead-Original-X": {"y"}, "traceparent": {"00-1-2-3"}, "Deadline": {"2099-01-01T00:00:00Z"},
	}
	for name, body := range map[string]string{"bytes": "\x00\xff\r\n\x80", "empty": ""} {
		h["X-Name"] = []string{name}
		h["Nats-Msg-Id"] = []string{name}
		before := time.Now().Add(-time.Second)
		seq := publish(t, nc, events.Task, "acme", h, body)
		dl := deadletter.NewStore(js, subjects)
		eventuallyStored(t, js, events.StreamDead, 1)
		eventuallyStored(t, js, events.StreamEvents, 0)
		d := letters(t, dl, deadletter.Filter{})[0]
		require.Equal(t, events.Header(h), d.Header)
		require.True(t, bytes.Equal([]byte(body), d.Body))
		require.Equal(t, seq, d.StreamSeq)
		require.Equal(t, events.StreamEvents, d.Stream)
		require.Equal(t, []string{"acme", "w", "task", "e1", "1-abc", "test"}, []string{d.Owner, d.Worker, d.Kind, d.EventID,
			d.Version, d.Node})
		require.Equal(t, "Error: boom\n    at hello.js:3:7", d.Failure.Stack)
		require.Equal(t, 1, d.Attempts)
		require.True(t, d.At.After(before) && !d.FirstAt.After(d.At))
		require.NoError(t, dl.Remove(t.Context(), d.Seq))
		require.ErrorIs(t, dl.Remove(t.Context(), d.Seq), deadletter.ErrNoDeadLetter)
	}
}

// A process that died between the dead letter and the ack leaves both; the next one must not make a second letter.
// Not even when the event failed for another reason this time.
func TestDeadLetterIsWrittenOnce(t *testing.T) {
	t.Parallel()
	for _, reason := range []events.Reason{events.ReasonException, events.ReasonCPU} {
		t.Run(string(reason), func(t *testing.T) { deadLetterIsWrittenOnce(t, reason) })
	}
}

func deadLetterIsWrittenOnce(t *testing.T, reason events.Reason) {
	srv := natstest.Start(t)
	pub := natstest.Connect(t, srv)
	js := jetStream(t, pub)
	doomed := natstest.Connect(t, srv)
	first := &dispatcher{handle: never}
	start(t, doomed, shortLease(), first)
	publish(t, pub, events.Task, "acme", nats.Header{"Event-Id": {"e1"}}, "x")
	require.Eventually(t, func() bool { return len(first.events()) == 1 }, patience, time.Millisecond)
	e := first.events()[0]
	doomed.Close()
	s, _ := dead(e)
	d := events.NewDeadLetter(&e.Event, s.Outcome.Failure, "1-abc", "dead process", 1, time.Now())
	_, err := js.PublishMsg(t.Context(), &nats.Msg{
		Subject: subjects.Dead(&e.Event, reason), Header: nats.Header(d.Encode()), Data: d.Body,
	}, jetstream.WithExpectLastSequencePerSubject(0))
	require.NoError(t, err)

	start(t, natstest.Connect(t, srv), shortLease(), &dispatcher{handle: dead})
	eventuallyStored(t, js, events.StreamEvents, 0)
	all := letters(t, deadletter.NewStore(js, subjects), deadletter.Filter{})
	require.Len(t, all, 1)
	require.Equal(t, "dead process", all[0].Node)
}

// An event stream that an operator created again may use the same numbers again, and so the subjects of old letters.
func TestDeadLetterOfAnotherEventIsNotMistakenForOurs(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	start(t, nc, testConfig(), &dispatcher{handle: dead})
	s, err := js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	next := s.CachedInfo().State.LastSeq + 1
	e := &lifecycle.Delivery{Event: events.Event{Kind: events.Task, Owner: "acme", Worker: "w", ID: "old",
		Stored: time.Now(), Body: []byte("old"), Origin: events.Origin{Stream: events.StreamEvents,
			Seq: next, Subject: "pinwheel.events.0.task.acme.w"}}}
	old := events.NewDeadLetter(&e.Event, events.Fail(events.ReasonException, "old"), "1", "n", 1, time.Now())
	_, err = js.PublishMsg(t.Context(), &nats.Msg{Subject: subjects.Dead(&e.Event, events.ReasonException),
		Header: nats.Header(old.Encode()), Data: e.Body})
	require.NoError(t, err)
	require.Equal(t, next, publish(t, nc, events.Task, "acme", nil, "new"))
	eventuallyStored(t, js, events.StreamDead, 2)
	eventuallyStored(t, js, events.StreamEvents, 0)
}

func TestListFiltersAndReplay(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	fixed := make(chan struct{})
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		select {
		case <-fixed:
			return ack(e)
		default:
			return dead(e)
		}
	}}
	start(t, nc, testConfig(), d)
	for _, owner := range []string{"a", "a", "b", "a"} {
		publish(t, nc, events.Task, owner, nats.Header{"X-Owner": {owner}}, "body of "+owner)
	}
	eventuallyStored(t, js, events.StreamDead, 4)
	dl := deadletter.NewStore(js, subjects)
	all := letters(t, dl, deadletter.Filter{})
	require.Len(t, all, 4)
	require.Len(t, letters(t, dl, deadletter.Filter{Owner: "a"}), 3)
	require.Len(t, letters(t, dl, deadletter.Filter{Owner: "a", Limit: 2}), 2)
	require.Len(t, letters(t, dl, deadletter.Filter{Reason: events.ReasonTimeout}), 0)
	require.Len(t, letters(t, dl, deadletter.Filter{Kind: "task", Worker: "w", Reason: events.ReasonException}), 4)
	since := 0 // letters of different owners may be stored in another order than their events ended
	for _, l := range all {
		if !l.At.Before(all[2].At) {
			since++
		}
	}
	require.Len(t, letters(t, dl, deadletter.Filter{Since: all[2].At}), since)
	require.Empty(t, letters(t, dl, deadletter.Filter{Since: time.Now().Add(time.Hour)}))
	_, err := dl.Get(t.Context(), 99)
	require.ErrorIs(t, err, deadletter.ErrNoDeadLetter)

	// Fails again: comes back with a count.
	require.NoError(t, dl.Replay(t.Context(), all[0], deadletter.ReplayOptions{}))
	require.Eventually(t, func() bool {
		now := letters(t, dl, deadletter.Filter{})
		return len(now) == 4 && now[3].Replays == 1 && now[3].EventID == all[0].EventID
	}, patience, 5*time.Millisecond)
	again := letters(t, dl, deadletter.Filter{})[3]
	require.Equal(t, string(all[0].Body), string(again.Body))
	require.ErrorIs(t, dl.Replay(t.Context(), again, deadletter.ReplayOptions{MaxReplays: 1}),
		deadletter.ErrTooManyReplays)

	// Two replays of one letter, as after a crash before the letter was removed: one run.
	close(fixed)
	eventuallyStored(t, js, events.StreamEvents, 0)
	before := len(d.events())
	require.NoError(t, dl.Replay(t.Context(), again, deadletter.ReplayOptions{MaxReplays: 1, Force: true}))
	require.NoError(t, dl.Replay(t.Context(), again, deadletter.ReplayOptions{Force: true}))
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Equal(t, before+1, len(d.events()))

	seen := 0
	n, err := dl.ReplayAll(t.Context(), deadletter.Selection{}, deadletter.ReplayOptions{Rate: 1000},
		func(s deadletter.Progress) {
			require.NoError(t, s.Err)
			seen++
		})
	require.NoError(t, err)
	require.Equal(t, deadletter.Counts{Total: 3, Done: 3}, n)
	require.Equal(t, 3, seen)
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Equal(t, 0, stored(t, js, events.StreamDead))
}

func TestRetriedEventsDeadLetterKnowsItsHistory(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	run := failUntil(3, 100*time.Millisecond)
	start(t, nc, testConfig(), &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if e.Attempt == 3 {
			return dead(e)
		}
		return run(e)
	}})
	publish(t, nc, events.Task, "acme", nil, "x")
	eventuallyStored(t, js, events.StreamDead, 1)
	d := letters(t, deadletter.NewStore(js, subjects), deadletter.Filter{})[0]
	require.Equal(t, 3, d.Attempts)
	require.GreaterOrEqual(t, d.At.Sub(d.FirstAt), 100*time.Millisecond)
	require.Len(t, d.History, 3)
	for i, run := range d.History {
		require.Equal(t, i+1, run.Attempt)
		require.NotEmpty(t, run.Message)
		require.Equal(t, "test", run.Node)
	}
	require.Equal(t, "boom", d.History[2].Message)
	require.True(t, d.History[0].At.Equal(d.FirstAt), "%s %s", d.History[0].At, d.FirstAt)
}

func TestMalformedEvents(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	d := &dispatcher{handle: ack}
	start(t, nc, testConfig(), d)
	to, sub := inbox(t, nc)
	bad := nats.Header{"Deadline": {"tomorrow"}, "Reply-To": {to}}

	publish(t, nc, events.Fetch, "acme", bad, "")
	m, err := sub.NextMsg(patience)
	require.NoError(t, err)
	require.Equal(t, "400", m.Header.Get(events.HeaderStatus))
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Zero(t, stored(t, js, events.StreamDead), "the requester knows")

	publish(t, nc, events.Task, "acme", bad, "")
	m, err = sub.NextMsg(patience)
	require.NoError(t, err)
	require.Contains(t, string(m.Data), `"success":false`)
	publish(t, nc, events.Fetch, "acme", nats.Header{"Deadline": {"tomorrow"}}, "")
	for _, subject := range []string{"pinwheel.events.nokind.acme.w", "pinwheel.events.task.no!name.w"} {
		_, err := js.Publish(t.Context(), subject, nil)
		require.NoError(t, err)
	}
	eventuallyStored(t, js, events.StreamDead, 4)
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Len(t, letters(t, deadletter.NewStore(js, subjects), deadletter.Filter{Reason: events.ReasonMalformed}), 4)
	require.Empty(t, d.events())
}
