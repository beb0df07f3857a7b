package attempts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/attempts"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
	"github.com/pinwheel-run/pinwheel/internal/test/jsapitest"
)

const patience = time.Minute // for facts that must come true

// at has no monotonic clock and no zone, so that it is the same after it was stored.
var at = time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)

// bucket is a store of records, and what it works with.
type bucket struct {
	*jsapitest.Bed
	*attempts.Store
	t *testing.T
}

func open(t *testing.T) *bucket {
	b := jsapitest.Open(t)
	return &bucket{b, attempts.NewStore(b.API, b.Usage, zerolog.Nop()), t}
}

func (b *bucket) find(e *events.Event) *attempts.Record {
	b.t.Helper()
	r, err := jsapitest.Result(b.Bed, func(done func(*attempts.Record, error)) { b.Find(e, done) })
	require.NoError(b.t, err)
	return r
}

func (b *bucket) put(e *events.Event, r attempts.Record, stale func() bool) {
	b.t.Helper()
	require.NoError(b.t, b.Done(func(done func(error)) { b.Put(e, r, 0, stale, func() { done(nil) }) }))
}

func current() bool { return false }

func TestRecordIsFoundUntilItIsForgotten(t *testing.T) {
	t.Parallel()
	b := open(t)
	e, other := jsapitest.Task(7, "e", at), jsapitest.Task(8, "e", at)
	require.Nil(t, b.find(e))
	r := attempts.Record{Returned: 1, Crashes: 1, CrashedAlone: true, Watched: true, Running: true, Stored: at.UnixNano(),
		Moving: &attempts.Moving{Until: at, Attempt: 3}}
	r.Fail(events.FailedRun{At: at, Attempt: 1, Reason: events.ReasonCPU, Message: "too long"})
	b.put(e, r, current)
	require.Equal(t, &r, b.find(e))
	require.Nil(t, b.find(other))
	r.Running = false
	b.put(e, r, current)
	require.Equal(t, &r, b.find(e), "the newest")

	b.Forget(e)
	require.Eventually(t, func() bool { return b.find(e) == nil }, patience, time.Millisecond)
	s, err := b.JS.Stream(t.Context(), "KV_"+events.BucketAttempts)
	require.NoError(t, err)
	m, err := s.GetLastMsgForSubject(t.Context(), "$KV."+events.BucketAttempts+"."+events.StreamEvents+".7")
	require.NoError(t, err)
	require.Equal(t, "60s", m.Header.Get("Nats-TTL"), "the server removes the deletion marker")
	require.Equal(t, 1, b.Stored("KV_"+events.BucketAttempts), "nothing but the marker is left")
}

// A stream that was deleted and created again gives its sequences to other events.
func TestRecordOfAnotherEventWithTheSameSequence(t *testing.T) {
	t.Parallel()
	b := open(t)
	before, now := jsapitest.Task(1, "before", at), jsapitest.Task(1, "now", at.Add(time.Nanosecond))
	b.put(before, attempts.Record{Failed: 1, Stored: at.UnixNano()}, current)
	require.NotNil(t, b.find(before))
	require.Nil(t, b.find(now))
	b.put(before, attempts.Record{Failed: 1}, current)
	require.NotNil(t, b.find(now), "records of earlier versions do not say when their event was stored")
}

func TestBrokenRecordsDoNotCount(t *testing.T) {
	t.Parallel()
	b := open(t)
	kv, err := b.JS.KeyValue(t.Context(), events.BucketAttempts)
	require.NoError(t, err)
	for _, text := range []string{"", "{", "[]", `"x"`, `{"failed":-1}`, `{"returned":-1}`, `{"crashes":-1}`,
		`{"unknown":-1}`, `{"outside":-1}`, `{"failed":"1"}`} {
		_, err := kv.PutString(t.Context(), events.StreamEvents+".7", text)
		require.NoError(t, err)
		require.Nil(t, b.find(jsapitest.Task(7, "e", at)), text)
	}
}

// A record that cannot be stored is stored later, unless there is a newer one.
func TestRecordIsStoredAgainUntilItIsStale(t *testing.T) {
	t.Parallel()
	b := open(t)
	kv, err := b.JS.KeyValue(t.Context(), events.BucketAttempts)
	require.NoError(t, err)
	status, err := kv.Status(t.Context())
	require.NoError(t, err)
	cfg := status.(*jetstream.KeyValueBucketStatus).StreamInfo().Config
	require.NoError(t, b.JS.DeleteKeyValue(t.Context(), events.BucketAttempts))

	e := jsapitest.Task(7, "e", at)
	b.put(e, attempts.Record{Failed: 1}, func() bool { return true })

	tries := 0
	b.put(e, attempts.Record{Failed: 2}, func() bool {
		if tries++; tries == 2 {
			_, err = b.JS.CreateStream(t.Context(), cfg)
		}
		return false
	})
	require.NoError(t, err)
	require.Equal(t, 2, tries)
	require.Equal(t, 2, b.find(e).Failed)
}

// What the record of an event says when the event is delivered again, for why the process ended in which it ran.
func TestDelivered(t *testing.T) {
	t.Parallel()
	const unknown, outside, fault, memory = crashnote.Unknown, crashnote.Outside, crashnote.Fault, crashnote.Memory
	ran := attempts.Record{Crashes: 1, Watched: true, Running: true, Instance: "I"}
	ranAlone, many := ran, ran
	ranAlone.Alone = true
	many.Unknown = attempts.MostUnknown - 1
	manyAlone := many
	manyAlone.Alone = true
	for name, c := range map[string]struct {
		r             attempts.Record
		deliveries    int
		cause         crashnote.Cause
		crashes, next int
		alone         bool
		unknown       int
	}{
		"first delivery":                {attempts.Record{}, 1, unknown, 0, 1, false, 0},
		"delivery without explanation":  {attempts.Record{}, 2, unknown, 1, 2, false, 0},
		"many of them count once":       {attempts.Record{}, 5, unknown, 1, 2, false, 0},
		"it was given back":             {attempts.Record{Returned: 1}, 2, unknown, 0, 1, false, 0},
		"it failed, and was given back": {attempts.Record{Failed: 2, Returned: 1}, 2, unknown, 0, 3, false, 0},
		"watched, and it had not begun": {attempts.Record{Crashes: 1, Watched: true}, 9, fault, 1, 2, false, 0},
		"an earlier crash was while it was alone": {attempts.Record{Crashes: 1, CrashedAlone: true, Watched: true}, 9, unknown,
			1, 2, true, 0},
		"it ran when somebody killed the process": {ran, 9, outside, 1, 3, false, 0},
		"so, and alone":                           {ranAlone, 9, outside, 1, 3, false, 0},
		"it ran, and the process broke":           {ran, 9, fault, 2, 3, false, 0},
		"so, and alone, and that is evidence":     {ranAlone, 9, fault, 2, 3, true, 0},
		"it ran, and took the memory":             {ran, 9, memory, 2, 3, false, 0},
		"so, and alone, and that is evidence too": {ranAlone, 9, memory, 2, 3, true, 0},
		"it ran, and its machine vanished":        {ran, 9, unknown, 2, 3, false, 1},
		"it vanished while it ran alone":          {ranAlone, 9, unknown, 2, 3, false, 1},
		"so many times, the last not alone":       {many, 9, unknown, 2, 3, false, attempts.MostUnknown},
		"so many times, the last alone":           {manyAlone, 9, unknown, 2, 3, true, attempts.MostUnknown},
		"so many times, the last from outside":    {manyAlone, 9, outside, 1, 3, false, attempts.MostUnknown - 1},
	} {
		r := c.r
		r.Delivered(c.deliveries, c.cause)
		require.Equal(t, []any{c.crashes, c.next, c.alone, c.unknown, false, false, ""},
			[]any{r.Crashes, r.Next(), r.CrashedAlone, r.Unknown, r.Running, r.Alone, r.Instance}, name)
	}
}

// How a process ended can be recorded many times, and is read by its instance.
func TestEnded(t *testing.T) {
	t.Parallel()
	b := open(t)
	find := func(instance string) (cause crashnote.Cause) {
		t.Helper()
		done := make(chan error, 1)
		b.API.Do(func() {
			b.FindEnded(instance, func(c crashnote.Cause, err error) { cause = c; done <- err })
		})
		require.NoError(t, <-done)
		return cause
	}
	require.Equal(t, crashnote.Unknown, find("A"))
	for range 2 {
		require.NoError(t, attempts.PutEnded(t.Context(), b.JS, crashnote.Ended{Instance: "A", Cause: crashnote.Outside}))
	}
	require.NoError(t, attempts.PutEnded(t.Context(), b.JS, crashnote.Ended{Instance: "B", Cause: crashnote.Fault}))
	require.NoError(t, attempts.PutEnded(t.Context(), b.JS, crashnote.Ended{Instance: "no.name", Cause: crashnote.Fault}))
	require.Equal(t, crashnote.Outside, find("A"))
	require.Equal(t, crashnote.Fault, find("B"))
	require.Equal(t, crashnote.Unknown, find("no.name"))
	require.Equal(t, 2, b.Stored("KV_"+events.BucketAttempts))
}

// The record of a delayed event goes with it. It keeps when the event first failed and the last failures, cut short.
func TestCarry(t *testing.T) {
	t.Parallel()
	require.Empty(t, attempts.Carry(nil))
	require.Empty(t, attempts.Carry(&attempts.Record{Returned: 3, Crashes: 1}))
	require.Nil(t, attempts.Carried(""))
	require.Nil(t, attempts.Carried("{"))

	r := &attempts.Record{Returned: 3, Crashes: 2, CrashedAlone: true, Watched: true, Running: true, Unknown: 1,
		Outside: 2, Spared: 3}
	for i := range events.MaxHistory + 3 {
		r.Fail(events.FailedRun{At: at.Add(time.Duration(i) * time.Second), Attempt: i + 1, Reason: events.ReasonException,
			Message: strings.Repeat("é", events.MaxHistoryMessage)})
	}
	require.Equal(t, events.MaxHistory+3, r.Failed)
	got := attempts.Carried(attempts.Carry(r))
	require.Equal(t, &attempts.Record{FirstAt: at, CrashedAlone: true, Unknown: 1, Spared: 5, History: r.History}, got)
	require.Len(t, got.History, events.MaxHistory)
	require.Equal(t, 4, got.History[0].Attempt, "the oldest failures are left out")
	require.LessOrEqual(t, len(got.History[0].Message), events.MaxHistoryMessage)
}
