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
	r := attempts.Record{Returned: 1, Crashes: 1, CrashedAlone: true, Watched: true, Running: true, Stored: at.UnixNano(), Moving: &attempts.Moving{Until: at, Attempt: 3}}
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
	for _, text := range []string{"", "{", "[]", `"x"`, `{"failed":-1}`, `{"returned":-1}`, `{"crashes":-1}`, `{"failed":"1"}`} {
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

// What the record of an event says when the event is delivered again.
func TestDelivered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		r             attempts.Record
		deliveries    int
		crashes, next int
		alone         bool
	}{
		"first delivery":                          {attempts.Record{}, 1, 0, 1, false},
		"delivery without explanation":            {attempts.Record{}, 2, 1, 2, false},
		"many of them count once":                 {attempts.Record{}, 5, 1, 2, false},
		"it was given back":                       {attempts.Record{Returned: 1}, 2, 0, 1, false},
		"it failed, and was given back":           {attempts.Record{Failed: 2, Returned: 1}, 2, 0, 3, false},
		"watched, and it was running":             {attempts.Record{Failed: 1, Crashes: 1, Watched: true, Running: true}, 9, 2, 4, false},
		"watched, and it ran alone":               {attempts.Record{Watched: true, Running: true, Alone: true}, 2, 1, 2, true},
		"watched, and it had not begun":           {attempts.Record{Crashes: 1, Watched: true}, 9, 1, 2, false},
		"an earlier crash was while it was alone": {attempts.Record{Crashes: 1, CrashedAlone: true, Watched: true}, 9, 1, 2, true},
	} {
		r := c.r
		r.Delivered(c.deliveries)
		require.Equal(t, []any{c.crashes, c.next, c.alone, false, false}, []any{r.Crashes, r.Next(), r.CrashedAlone, r.Running, r.Alone}, name)
	}
}

// The record of a delayed event goes with it. It keeps when the event first failed and the last failures, cut short.
func TestCarry(t *testing.T) {
	t.Parallel()
	require.Empty(t, attempts.Carry(nil))
	require.Empty(t, attempts.Carry(&attempts.Record{Returned: 3, Crashes: 1}))
	require.Nil(t, attempts.Carried(""))
	require.Nil(t, attempts.Carried("{"))

	r := &attempts.Record{Returned: 3, Crashes: 2, CrashedAlone: true, Watched: true, Running: true}
	for i := range events.MaxHistory + 3 {
		r.Fail(events.FailedRun{At: at.Add(time.Duration(i) * time.Second), Attempt: i + 1, Reason: events.ReasonException, Message: strings.Repeat("é", events.MaxHistoryMessage)})
	}
	require.Equal(t, events.MaxHistory+3, r.Failed)
	got := attempts.Carried(attempts.Carry(r))
	require.Equal(t, &attempts.Record{FirstAt: at, CrashedAlone: true, History: r.History}, got)
	require.Len(t, got.History, events.MaxHistory)
	require.Equal(t, 4, got.History[0].Attempt, "the oldest failures are left out")
	require.LessOrEqual(t, len(got.History[0].Message), events.MaxHistoryMessage)
}
