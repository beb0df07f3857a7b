package consumer_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// unwritable are header blocks that JetStream stores and that nats.go does not write again, by what is wrong. The verb
// stands for further lines.
var unwritable = map[string]string{
	"slash in a name":    "NATS/1.0\r\na/b: c\r\n%sX: y\r\n\r\n",
	"at in a name":       "NATS/1.0\r\na@b: c\r\n%sX: y\r\n\r\n",
	"space in a name":    "NATS/1.0\r\na b: c\r\n%s\r\n",
	"space after a name": "NATS/1.0\r\na : c\r\n%s\r\n",
	"name in UTF-8":      "NATS/1.0\r\nä: c\r\n%s\r\n",
	"name in bytes":      "NATS/1.0\r\n\xff\x00: c\r\n%s\r\n",
	"HTTP with a slash":  "NATS/1.0\r\nHttp-Header-a/b: c\r\n%s\r\n",
	"carriage return":    "NATS/1.0\r\nX: a\rb\r\n%s\r\n",
	"no colon":           "NATS/1.0\r\nno colon\r\n%s\r\n",
	"no end":             "NATS/1.0\r\nX: y\r\n%s",
	"no start":           "X: y\r\n%s\r\n",
	"too large":          "NATS/1.0\r\n" + strings.Repeat("Parked-X: y\r\n", 3000) + "%s\r\n",
}

// An event with headers that cannot be written again becomes a letter at once, wherever else it would have been stored
// again: parked, delayed by its publisher or for a retry, given back. The letter keeps every byte.
func TestUnwritableEventsEndWithALetter(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	js := jetStream(t, nc)
	var d dispatcher
	d.handle = func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		switch string(e.Body) {
		case "park":
			return park(e)
		case "retry":
			return lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{Verdict: lifecycle.Retry, Delay: time.Hour,
				Failure: events.Fail(events.ReasonException, "again")}}, true
		case "give back":
			return lifecycle.Settlement{Event: e, Order: lifecycle.Return}, true
		case "answer":
			return echo(e)
		}
		return dead(e)
	}
	cfg := testConfig()
	cfg.LongRetry = 0
	start(t, nc, cfg, &d)
	want := map[string]string{} // block and body, by owner
	for name, block := range unwritable {
		for i, how := range []string{"die", "park", "retry", "give back", "answer", "delay"} {
			lines := "Event-Id: " + how + "\r\n"
			if how == "delay" {
				lines += "Deliver-After: 1h\r\n"
			}
			owner, full := fmt.Sprint(strings.NewReplacer(" ", "-").Replace(name), i), fmt.Sprintf(block, lines)
			want[owner] = full + how
			natstest.PublishRaw(t, srv.URL(), subjects.Event(events.Task, owner, "w"), full, how)
		}
	}
	eventuallyStored(t, js, events.StreamDead, len(want))
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Zero(t, stored(t, js, events.StreamParked)+stored(t, js, events.StreamSchedules))
	require.Empty(t, d.events(), "none runs")
	store := deadletter.NewStore(js, subjects)
	for _, l := range letters(t, store, deadletter.Filter{}) {
		require.Equal(t, events.ReasonMalformed, l.Failure.Reason)
		require.Equal(t, "task", l.Kind)
		require.Equal(t, want[l.Owner], string(l.Block)+string(l.Body), l.Owner)
		err := store.Replay(t.Context(), l, deadletter.ReplayOptions{DryRun: true})
		if strings.HasPrefix(l.Owner, "no-end") || strings.HasPrefix(l.Owner, "no-start") {
			require.NoError(t, err, "its lines are headers")
		} else {
			require.ErrorContains(t, err, "cannot be replayed: header", l.Owner)
		}
	}
}

// The letter of such an event can be shown, exported and imported. An edit that removes what is wrong makes it an event
// that runs.
func TestUnwritableEventsRunOnceTheyAreEdited(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	js := jetStream(t, nc)
	d := &dispatcher{handle: ack}
	start(t, nc, testConfig(), d)
	const kept = "Event-Id: mine\r\nnats-x: steers\r\nX-Kept: \xff\r\n"
	natstest.PublishRaw(t, srv.URL(), subjects.Event(events.Task, "acme", "w"), "NATS/1.0\r\na/b: c\r\nno colon\r\n"+kept+
		"\r\n", "body")
	natstest.PublishRaw(t, srv.URL(), subjects.Event(events.Task, "acme", "w"), "NATS/1.0\r\na/b: c\r\n"+kept+"\r\n",
		"body")
	eventuallyStored(t, js, events.StreamDead, 2)
	store := deadletter.NewStore(js, subjects)
	before := letters(t, store, deadletter.Filter{})
	require.ElementsMatch(t, []int{1, 2}, []int{len(before[0].Header[""]) + len(before[0].Header["a/b"]),
		len(before[1].Header[""]) + len(before[1].Header["a/b"])})
	var file bytes.Buffer
	_, err := store.Export(t.Context(), deadletter.Selection{}, &file, nil)
	require.NoError(t, err)
	_, err = store.Purge(t.Context(), deadletter.Selection{}, false, nil)
	require.NoError(t, err)
	counts, err := store.Import(t.Context(), &file, nil)
	require.NoError(t, err)
	require.Equal(t, 2, counts.Stored)
	for i, l := range letters(t, store, deadletter.Filter{}) {
		require.Equal(t, before[i].Block, l.Block)
		require.Equal(t, before[i].Header, l.Header)
		require.Equal(t, "body", string(l.Body))
		require.ErrorContains(t, store.Replay(t.Context(), l, deadletter.ReplayOptions{}), "cannot be replayed: header")
		require.Contains(t, []string{"mine", fmt.Sprint(l.StreamSeq)}, l.EventID)
		l, err = store.Edit(t.Context(), l.Seq, events.Edit{Body: []byte("new body")})
		require.NoError(t, err)
		require.Equal(t, before[i].Block, l.Block, "the headers are as they were")
		l, err = store.Edit(t.Context(), l.Seq, events.Edit{Remove: []string{"a/b", ""}})
		require.NoError(t, err)
		require.Nil(t, l.Block)
		require.NoError(t, store.Replay(t.Context(), l, deadletter.ReplayOptions{}))
	}
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Len(t, d.events(), 2)
	for _, e := range d.events() {
		require.Equal(t, []string{"new body", "\xff"}, []string{string(e.Body), e.Header.Get("X-Kept")})
	}
	require.Zero(t, stored(t, js, events.StreamDead))
	require.ErrorContains(t, events.Edit{Set: events.Header{"a/b": {"c"}}}.Validate(), "a name has only")
}

// A call with such headers is answered at once with what is allowed, and stores nothing.
func TestCallsWithUnwritableHeadersAreRefused(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	d := &dispatcher{handle: echo}
	start(t, nc, testConfig(), d)
	for name, block := range unwritable {
		header, _ := natstest.RequestRaw(t, srv.URL(), natstest.Raw{Subject: subjects.Call(events.Fetch, "acme", "w"),
			Header: fmt.Sprintf(block, ""), Body: "x"})
		h, err := nats.DecodeHeadersMsg([]byte(header))
		require.NoError(t, err)
		require.Equal(t, "400", h.Get(events.HeaderStatus), "%s: %q", name, header)
		require.Contains(t, h.Get(events.HeaderError), "malformed: ", name)
	}
	require.Zero(t, stored(t, jetStream(t, nc), events.StreamEvents))
	require.Empty(t, d.events())
}

// White space around a value is not part of it, wherever the event is stored again.
func TestWhiteSpaceAroundValues(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	d := &dispatcher{handle: ack}
	start(t, natstest.Connect(t, srv), testConfig(), d)
	natstest.PublishRaw(t, srv.URL(), subjects.Event(events.Task, "acme", "w"), "NATS/1.0\r\nX:  \t y \t\r\n\r\n", "body")
	require.Eventually(t, func() bool { return len(d.events()) == 1 }, patience, time.Millisecond)
	require.Equal(t, []string{"y"}, d.events()[0].Header["X"])
}

// refuseLetters makes the stream of letters refuse all messages, with or without an answer that is final, until undo.
func refuseLetters(t *testing.T, nc *nats.Conn) (undo func()) {
	t.Helper()
	js := jetStream(t, nc)
	s, err := js.Stream(t.Context(), events.StreamDead)
	require.NoError(t, err)
	narrow := s.CachedInfo().Config
	narrow.MaxMsgSize = 1
	_, err = js.UpdateStream(t.Context(), narrow)
	require.NoError(t, err)
	return func() {
		_, err := js.UpdateStream(t.Context(), s.CachedInfo().Config)
		require.NoError(t, err)
	}
}

// Events that cannot be settled leave the window after a while. They stay in their stream, and others run.
func TestEventsThatCannotBeSettledAreSetAside(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if e.Owner == "good" {
			return ack(e)
		}
		return dead(e)
	}}
	cfg := testConfig()
	cfg.Window, cfg.SettleWithin = 32, time.Second
	f := start(t, nc, cfg, d)
	refuseLetters(t, nc)
	const n = 100
	for i := range n {
		publish(t, nc, events.Task, fmt.Sprint("acme", i%10), nil, "x")
	}
	require.Eventually(t, func() bool { s := f.Stats(); return s.SetAside == n && s.Held == 0 }, patience,
		time.Millisecond)
	require.Equal(t, n, stored(t, js, events.StreamEvents))
	publish(t, nc, events.Task, "good", nil, "x")
	eventuallyStored(t, js, events.StreamEvents, n)
}

// Owners without workers have a small part of the window together, when their events cannot be settled.
func TestOwnersWithoutWorkersHaveNoShare(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	cfg := testConfig()
	f := start(t, nc, cfg, &dispatcher{handle: dead})
	f.catalog.Install(workers.Only(&workers.Worker{Owner: "good", Name: "w"}))
	refuseLetters(t, nc)
	const each = 20
	for i := range each {
		publish(t, nc, events.Task, fmt.Sprint("nobody", i), nil, "x")
		publish(t, nc, events.Task, "good", nil, "x")
	}
	share := cfg.Window / 16
	require.Eventually(t, func() bool { s := f.Stats(); return s.SetAside == int64(each-share) && s.Held == each+share },
		patience, time.Millisecond)
}

// What CheckWritable allows comes out of nats.go and a server as it went in, and what it refuses would not.
func FuzzCheckWritable(f *testing.F) {
	for _, block := range unwritable {
		f.Add([]byte(fmt.Sprintf(block, "Event-Id: 1\r\n")))
	}
	f.Add([]byte("NATS/1.0\r\nX:  y \r\nX: z\r\nx: \r\n: empty\r\n\r\n"))
	f.Add([]byte("NATS/1.0 503 No\r\nNats-Msg-Id: y\nX-!#$%&'*+-.^_`|~09: \x00\xff\r\n\r\n"))
	nc := natstest.Connect(f, natstest.Start(f))
	sub, err := nc.SubscribeSync("there")
	require.NoError(f, err)
	decoder := events.Decoder{Subjects: subjects}
	f.Fuzz(func(t *testing.T, block []byte) {
		h, err := nats.DecodeHeadersMsg(block)
		origin := events.Origin{Subject: "pinwheel.events.0.task.a.b", Seq: 1, HeaderBytes: len(block)}
		e, failure := decoder.Decode(origin, events.Header(h), nil, time.Unix(1, 0))
		if err != nil {
			require.True(t, len(block) == 0 || e.HeadersLost() && failure != nil)
			return
		}
		why := e.Header.CheckWritable()
		if why != nil {
			require.NotNil(t, failure, "Decode decides the same")
			require.Equal(t, events.ReasonMalformed, failure.Reason)
		}
		if err = nc.PublishMsg(&nats.Msg{Subject: "there", Header: h, Data: []byte("x")}); err != nil {
			require.Error(t, why, "%q: %v", block, err)
			return
		}
		m, err := sub.NextMsg(patience)
		require.NoError(t, err)
		same := len(h) == 0 && len(m.Header) == 0 || fmt.Sprint(h) == fmt.Sprint(m.Header)
		if why == nil {
			require.True(t, same, "%q became %q", h, m.Header)
		} else {
			require.True(t, !same || len(block) > events.MaxEventHeaders/4, "%q: %v", block, why)
		}
	})
}
