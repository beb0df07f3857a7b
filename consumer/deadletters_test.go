package consumer_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// lay stores a dead letter, as a process that gave up would.
func lay(t testing.TB, js jetstream.JetStream, d *events.DeadLetter) *events.DeadLetter {
	t.Helper()
	if d.Failure.Reason == "" {
		d.Failure = *events.NewFailure(events.ReasonException, "boom", "")
	}
	if d.At.IsZero() {
		d.At = time.Now()
	}
	d.FirstAt, d.Stream, d.Kind, d.Node, d.Attempts = d.At, events.StreamEvents, "task", "n", 1
	if d.Worker == "" {
		d.Worker = "w"
	}
	if d.Owner == "" {
		d.Owner = "acme"
	}
	ack, err := js.PublishMsg(t.Context(), &nats.Msg{
		Subject: subjects.DeadLetter(d, d.Failure.Reason), Header: nats.Header(d.Encode()), Data: d.Body,
	})
	require.NoError(t, err)
	got, err := deadletter.NewStore(js, subjects).Get(t.Context(), ack.Sequence)
	require.NoError(t, err)
	return got
}

// assetsOf returns JetStream with the assets of a fleet, and no process that takes events.
func assetsOf(t testing.TB) (*nats.Conn, jetstream.JetStream, *deadletter.Store) {
	t.Helper()
	nc := connect(t)
	js := jetStream(t, nc)
	require.NoError(t, consumer.CreateAssets(t.Context(), js, testConfig(), nc.MaxPayload()))
	return nc, js, deadletter.NewStore(js, subjects)
}

func numbers(t testing.TB, dl *deadletter.Store, f deadletter.Filter) []uint64 {
	t.Helper()
	list := []uint64{}
	for _, d := range letters(t, dl, f) {
		list = append(list, d.StreamSeq)
	}
	return list
}

func TestDeadLettersAreChosen(t *testing.T) {
	t.Parallel()
	_, js, dl := assetsOf(t)
	at := time.Now().Add(-time.Hour)
	for i := range 5 {
		n := i + 1
		lay(t, js, &events.DeadLetter{
			StreamSeq: uint64(n), At: at.Add(time.Duration(i) * time.Minute), Replays: i,
			Failure: *events.NewFailure(events.ReasonException, fmt.Sprintf("Error: no price for %d", n), ""),
		})
	}
	for want, f := range map[string]deadletter.Filter{
		"[1 2 3 4 5]": {},
		"[3 4 5]":     {Since: at.Add(2 * time.Minute)},
		"[1 2]":       {Until: at.Add(2 * time.Minute)},
		"[2 4]":       {Match: regexp.MustCompile("for [24]$")},
		"[4 5]":       {MinReplays: 3},
		"[2 3]":       {MinReplays: 1, MaxReplays: 2},
		"[1]":         {MaxReplays: deadletter.Never},
		"[]":          {Match: regexp.MustCompile("^no price")},
	} {
		require.Equal(t, want, fmt.Sprint(numbers(t, dl, f)), "%+v", f)
	}
	require.Equal(t, []uint64{4, 5}, numbers(t, dl, deadletter.Filter{After: 3}))
	require.Equal(t, []uint64{4}, numbers(t, dl, deadletter.Filter{After: 3, Limit: 1}))
	for want, f := range map[int]deadletter.Filter{5: {}, 2: {After: 3}, 3: {Limit: 3}, 0: {Owner: "globex"}} {
		n, err := dl.Count(t.Context(), f)
		require.NoError(t, err)
		require.Equal(t, want, n, "%+v", f)
	}
	s, err := js.Stream(t.Context(), events.StreamDead)
	require.NoError(t, err)
	require.Zero(t, s.CachedInfo().State.Consumers, "counting leaves nothing behind")
}

func TestEditedLetterIsOneAndTheSame(t *testing.T) {
	t.Parallel()
	nc, js, dl := assetsOf(t)
	old := lay(t, js, &events.DeadLetter{
		StreamSeq: 7, EventID: "e", Header: events.Header{"X": {"1"}, "Nats-Msg-Id": {"m"}}, Body: []byte(`{"id":1}`),
		Replays: 2,
		History: []events.FailedRun{{At: time.Now().UTC(), Attempt: 1, Reason: events.ReasonCPU}},
	})
	edited, err := dl.Edit(t.Context(), old.Seq, events.Edit{Patch: []byte(`{"id":2}`), Set: events.Header{"X": {"2"}}})
	require.NoError(t, err)
	all := letters(t, dl, deadletter.Filter{})
	require.Len(t, all, 1)
	require.Equal(t, edited, all[0])
	require.Greater(t, edited.Seq, old.Seq)
	require.False(t, edited.Edited.IsZero())
	want := *old
	want.Seq, want.Edited, want.Body, want.Header = edited.Seq, edited.Edited, []byte(`{"id":2}`), events.Header{
		"X": {"2"}, "Nats-Msg-Id": {"m"}}
	require.Equal(t, &want, edited)
	require.Equal(t, old.Identity(), edited.Identity())

	for _, same := range []events.Edit{
		{}, {Body: []byte(`{"id":2}`)}, {Patch: []byte(`{ "id": 2 }`)}, {Patch: []byte(`{}`)},
		{Patch: []byte(`{"gone":null}`)}, {Set: events.Header{"X": {"2"}}}, {Remove: []string{"Y"}},
	} {
		unchanged, err := dl.Edit(t.Context(), edited.Seq, same)
		require.NoError(t, err)
		require.Equal(t, edited, unchanged, "nothing is changed, so it keeps its number")
	}
	require.Equal(t, []*events.DeadLetter{edited}, letters(t, dl, deadletter.Filter{}))

	_, err = dl.Edit(t.Context(), old.Seq, events.Edit{Body: []byte("x")})
	require.ErrorIs(t, err, deadletter.ErrNoDeadLetter)
	_, err = dl.Edit(t.Context(), edited.Seq, events.Edit{Set: events.Header{"Nats-Rollup": {"all"}}})
	require.ErrorContains(t, err, "header Nats-Rollup")
	_, err = dl.Edit(t.Context(), edited.Seq, events.Edit{Body: make([]byte, nc.MaxPayload())})
	require.ErrorIs(t, err, nats.ErrMaxPayload)
	require.Equal(t, []*events.DeadLetter{edited}, letters(t, dl, deadletter.Filter{}), "what failed changed nothing")

	// The event stream was deleted and created again, and counts from 1: another event has the same number.
	other := lay(t, js, &events.DeadLetter{StreamSeq: 7, EventID: "other"})
	_, err = dl.Edit(t.Context(), other.Seq, events.Edit{Body: []byte("x")})
	require.ErrorContains(t, err, fmt.Sprintf("as the older %d", edited.Seq))
	_, err = dl.Edit(t.Context(), edited.Seq, events.Edit{Body: []byte("x")})
	require.ErrorIs(t, err, deadletter.ErrChanged)
	require.Len(t, letters(t, dl, deadletter.Filter{}), 2)
}

// A replay that was published and whose letter is still there, as after a crash, runs once even when JetStream has
// forgotten the message id, because of the claim.
func TestReplayPublishedTwiceRunsOnce(t *testing.T) {
	t.Parallel()
	nc, js, dl := assetsOf(t)
	letter := lay(t, js, &events.DeadLetter{StreamSeq: 3, EventID: "e", Body: []byte("x")})
	for range 3 { // the second and third publish are later than the window
		subject, h, err := letter.Replay(subjects, events.Target{})
		require.NoError(t, err)
		h.Set(events.HeaderReplay, letter.ReplayMark(nats.NewInbox()[7:]))
		_, err = js.PublishMsg(t.Context(), &nats.Msg{Subject: subject, Header: nats.Header(h), Data: letter.Body})
		require.NoError(t, err)
	}
	other := lay(t, js, &events.DeadLetter{StreamSeq: 4, EventID: "f"})
	require.NoError(t, dl.Replay(t.Context(), other, deadletter.ReplayOptions{}))
	d := &dispatcher{handle: ack}
	start(t, nc, testConfig(), d)
	eventuallyStored(t, js, events.StreamEvents, 0)
	ids := []string{}
	for _, e := range d.events() {
		ids = append(ids, e.ID)
		require.Equal(t, 1, e.Attempt)
		require.Equal(t, 1, e.Replays())
	}
	require.ElementsMatch(t, []string{"e", "f"}, ids)
}

// The process that claimed a replay dies: the claim is the message's, not the process's.
func TestClaimedReplayOfACrashedProcessRunsAgain(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	js := jetStream(t, nc)
	require.NoError(t, consumer.CreateAssets(t.Context(), js, shortLease(), nc.MaxPayload()))
	dl := deadletter.NewStore(js, subjects)
	require.NoError(t, dl.Replay(t.Context(), lay(t, js, &events.DeadLetter{StreamSeq: 3, EventID: "e"}),
		deadletter.ReplayOptions{}))
	doomed := natstest.Connect(t, srv)
	first := &dispatcher{handle: never}
	start(t, doomed, shortLease(), first)
	require.Eventually(t, func() bool { return len(first.events()) == 1 }, patience, time.Millisecond)
	doomed.Close()
	second := &dispatcher{handle: ack}
	start(t, nc, shortLease(), second)
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Len(t, second.events(), 1)
	require.Equal(t, 2, second.events()[0].Attempt)
}

// A replay mark that a publisher invented has no effect.
func TestMadeUpReplayMarks(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	d := &dispatcher{handle: ack}
	start(t, nc, testConfig(), d)
	for _, mark := range []string{"", "x", "*.1.>", strings.Repeat("a", 32) + ".1.n", strings.Repeat("z", 32) + ".1.n"} {
		publish(t, nc, events.Task, "acme", nats.Header{events.HeaderReplay: {mark}}, "x")
	}
	eventuallyStored(t, jetStream(t, nc), events.StreamEvents, 0)
	require.Len(t, d.events(), 5)
}

// A process that died between the dead letter and the ack has ended the event: it does not run again.
func TestEventWithADeadLetterDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	js := jetStream(t, nc)
	doomed := natstest.Connect(t, srv)
	first := &dispatcher{handle: never}
	start(t, doomed, shortLease(), first)
	publish(t, nc, events.Task, "acme", nil, "x")
	require.Eventually(t, func() bool { return len(first.events()) == 1 }, patience, time.Millisecond)
	e := first.events()[0]
	doomed.Close()
	d := events.NewDeadLetter(&e.Event, events.Fail(events.ReasonException, "boom"), "1-abc", "dead process", 1,
		time.Now())
	d.Hook = events.DeadHook{Subject: "_INBOX.told"}
	_, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: subjects.Dead(&e.Event, events.ReasonException),
		Header: nats.Header(d.Encode()), Data: d.Body})
	require.NoError(t, err)
	told, err := nc.SubscribeSync("_INBOX.told")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	second := &dispatcher{handle: ack}
	start(t, nc, shortLease(), second)
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Empty(t, second.events())
	require.Len(t, letters(t, deadletter.NewStore(js, subjects), deadletter.Filter{}), 1)
	_, err = told.NextMsg(patience)
	require.NoError(t, err, "who is to be told is told by the next process")
}

// Whose letter it is does not depend on the clock of the process that wrote it: it says when its event was stored.
func TestLettersAreKnownByWhenTheirEventsWereStored(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(d *events.DeadLetter)
		runs   int
	}{
		"of a process whose clock is slow": {func(d *events.DeadLetter) { d.At = d.At.Add(-time.Hour) }, 0},
		"of an earlier binary":             {func(d *events.DeadLetter) { d.At, d.Stored = d.At.Add(-time.Hour), time.Time{} }, 0},
		"of a stream before":               {func(d *events.DeadLetter) { d.Stored = d.Stored.Add(-time.Minute) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			srv := natstest.Start(t)
			nc := natstest.Connect(t, srv)
			js := jetStream(t, nc)
			doomed := natstest.Connect(t, srv)
			first := &dispatcher{handle: never}
			start(t, doomed, shortLease(), first)
			publish(t, nc, events.Task, "acme", nats.Header{"Event-Id": {"e"}}, "x")
			require.Eventually(t, func() bool { return len(first.events()) == 1 }, patience, time.Millisecond)
			e := first.events()[0]
			doomed.Close()
			d := events.NewDeadLetter(&e.Event, events.Fail(events.ReasonException, "boom"), "1-abc", "dead process", 1,
				time.Now())
			test.change(d)
			_, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: subjects.Dead(&e.Event, events.ReasonException),
				Header: nats.Header(d.Encode()), Data: d.Body})
			require.NoError(t, err)
			second := &dispatcher{handle: dead}
			start(t, nc, shortLease(), second)
			eventuallyStored(t, js, events.StreamEvents, 0)
			require.Len(t, second.events(), test.runs)
			require.Len(t, letters(t, deadletter.NewStore(js, subjects), deadletter.Filter{}), 1+test.runs)
		})
	}
}

func TestReplayElsewhereEditedAndDry(t *testing.T) {
	t.Parallel()
	nc, js, dl := assetsOf(t)
	letter := lay(t, js, &events.DeadLetter{StreamSeq: 3, EventID: "e", Body: []byte(`{"a":1}`), Replays: 3,
		Header: events.Header{"Worker-Version": {"1"}}})
	o := deadletter.ReplayOptions{MaxReplays: 3, DryRun: true}
	err := dl.Replay(t.Context(), letter, o)
	require.ErrorIs(t, err, deadletter.ErrTooManyReplays)
	require.ErrorContains(t, err, "has been replayed 3 times, and 3 is the limit")
	o.Force = true
	o.Edit = events.Edit{Patch: []byte("[")}
	require.ErrorContains(t, dl.Replay(t.Context(), letter, o), "the patch is not JSON")
	o.Edit = events.Edit{Patch: []byte(`{"a":2}`)}
	require.NoError(t, dl.Replay(t.Context(), letter, o))
	require.Len(t, letters(t, dl, deadletter.Filter{}), 1, "a dry run changes nothing")
	require.Zero(t, stored(t, js, events.StreamEvents))

	o.DryRun, o.To = false, events.Target{Worker: "other", Version: "12"}
	require.NoError(t, dl.Replay(t.Context(), letter, o))
	d := &dispatcher{handle: ack}
	start(t, nc, testConfig(), d)
	eventuallyStored(t, js, events.StreamEvents, 0)
	e := d.events()[0]
	require.Equal(t, []string{"other", "12", `{"a":2}`, "e"}, []string{e.Worker, e.Version, string(e.Body), e.ID})
	require.Equal(t, 4, e.Replays())
}

func TestReplayAllIsCancelledBetweenLetters(t *testing.T) {
	t.Parallel()
	_, js, dl := assetsOf(t)
	for i := range 5 {
		lay(t, js, &events.DeadLetter{StreamSeq: uint64(i + 1)})
	}
	ctx, cancel := context.WithCancel(t.Context())
	counts, err := dl.ReplayAll(ctx, deadletter.Selection{}, deadletter.ReplayOptions{Rate: 1e6},
		func(s deadletter.Progress) {
			if s.Counts.Done == 2 {
				cancel()
			}
		})
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, deadletter.Counts{Total: 5, Done: 2}, counts)
	require.Equal(t, []uint64{3, 4, 5}, numbers(t, dl, deadletter.Filter{}))
	require.Equal(t, 2, stored(t, js, events.StreamEvents))

	counts, err = dl.ReplayAll(t.Context(), deadletter.Selection{IDs: []uint64{3, 99, 4}},
		deadletter.ReplayOptions{DryRun: true}, nil)
	require.NoError(t, err)
	require.Equal(t, deadletter.Counts{Total: 3, Done: 2, Failed: 1}, counts)
	counts, err = dl.Purge(t.Context(), deadletter.Selection{Filter: deadletter.Filter{Limit: 2}}, false, nil)
	require.NoError(t, err)
	require.Equal(t, deadletter.Counts{Total: 2, Done: 2}, counts)
	require.Equal(t, []uint64{5}, numbers(t, dl, deadletter.Filter{}))
}

func TestExportedLettersComeBackOnce(t *testing.T) {
	t.Parallel()
	_, js, dl := assetsOf(t)
	for i := range 4 {
		lay(t, js, &events.DeadLetter{
			StreamSeq: uint64(i + 1), EventID: fmt.Sprint(i), Body: []byte{byte(i), 0xff, '\n'},
			Header:  events.Header{"X": {"a", "\xff"}, "Status": {"409"}},
			Failure: *events.NewFailure(events.ReasonTimeout, "<slow> ☃", "at a\nat b"),
		})
	}
	before := letters(t, dl, deadletter.Filter{})
	var file bytes.Buffer
	counts, err := dl.Export(t.Context(), deadletter.Selection{}, &file, nil)
	require.NoError(t, err)
	require.Equal(t, deadletter.Counts{Total: 4, Done: 4}, counts)

	text := file.String()
	got, err := dl.Import(t.Context(), strings.NewReader(text), nil)
	require.NoError(t, err)
	require.Equal(t, deadletter.ImportCounts{Line: 4, There: 4}, got)
	for _, n := range []uint64{before[0].Seq, before[2].Seq} {
		require.NoError(t, dl.Remove(t.Context(), n))
	}
	// Interrupted after one letter, and repeated; then once more.
	ctx, cancel := context.WithCancel(t.Context())
	got, err = dl.Import(ctx, strings.NewReader(text), func(deadletter.ImportCounts) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, deadletter.ImportCounts{Line: 1, Stored: 1}, got)
	got, err = dl.Import(t.Context(), strings.NewReader(text+"\n"), nil)
	require.NoError(t, err)
	require.Equal(t, deadletter.ImportCounts{Line: 5, Stored: 1, There: 3}, got)
	got, err = dl.Import(t.Context(), strings.NewReader(text), nil)
	require.NoError(t, err)
	require.Equal(t, 4, got.There)

	after := map[uint64]*events.DeadLetter{}
	for _, d := range letters(t, dl, deadletter.Filter{}) {
		after[d.StreamSeq] = d
	}
	require.Len(t, after, 4)
	for _, want := range before {
		d := after[want.StreamSeq]
		d.Seq, d.Imported = want.Seq, want.Imported
		require.Equal(t, want, d)
	}
	lines := strings.SplitAfter(text, "\n")
	got, err = dl.Import(t.Context(), strings.NewReader(lines[0]+"{}\n"+lines[1]), nil)
	require.ErrorContains(t, err, "line 2: not a dead letter: reason")
	require.Equal(t, 1, got.There)
}

// A replayed letter that is imported again can be replayed again.
func TestImportedLetterMayBeReplayedAgain(t *testing.T) {
	t.Parallel()
	nc, js, dl := assetsOf(t)
	lay(t, js, &events.DeadLetter{StreamSeq: 1, EventID: "e"})
	var file bytes.Buffer
	_, err := dl.Export(t.Context(), deadletter.Selection{}, &file, nil)
	require.NoError(t, err)
	d := &dispatcher{handle: ack}
	start(t, nc, testConfig(), d)
	for n := range 2 {
		_, err := dl.ReplayAll(t.Context(), deadletter.Selection{}, deadletter.ReplayOptions{}, nil)
		require.NoError(t, err)
		eventuallyStored(t, js, events.StreamEvents, 0)
		require.Len(t, d.events(), n+1)
		_, err = dl.Import(t.Context(), bytes.NewReader(file.Bytes()), nil)
		require.NoError(t, err)
	}
}

// The stream of an earlier version does not allow to replace a letter in one step. The first process of this version
// allows it.
func TestStreamOfBeforeLearnsToReplaceLetters(t *testing.T) {
	t.Parallel()
	nc, js, dl := assetsOf(t)
	s, err := js.Stream(t.Context(), events.StreamDead)
	require.NoError(t, err)
	cfg := s.CachedInfo().Config
	require.True(t, cfg.AllowRollup)
	require.NoError(t, js.DeleteStream(t.Context(), events.StreamDead))
	cfg.AllowRollup, cfg.Metadata = false, nil
	_, err = js.CreateStream(t.Context(), cfg)
	require.NoError(t, err)
	letter := lay(t, js, &events.DeadLetter{StreamSeq: 1})
	_, err = dl.Edit(t.Context(), letter.Seq, events.Edit{Body: []byte("x")})
	require.Error(t, err)
	require.Len(t, letters(t, dl, deadletter.Filter{}), 1, "what cannot be edited stays")
	require.NoError(t, consumer.CreateAssets(t.Context(), js, testConfig(), nc.MaxPayload()))
	_, err = dl.Edit(t.Context(), letter.Seq, events.Edit{Body: []byte("x")})
	require.NoError(t, err)
}
