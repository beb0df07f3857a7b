package results_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/consumer/results"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/jsapitest"
)

const patience = time.Minute // for facts that must come true

// bed is a store of results, and what it works with.
type bed struct {
	*jsapitest.Bed
	*results.Store
	t *testing.T
}

func open(t *testing.T, change ...func(*consumer.Config)) *bed {
	b := jsapitest.Open(t, change...)
	return &bed{b, results.NewStore(b.API, b.Usage, jsapitest.Prefix), t}
}

func (b *bed) find(e *events.Event) *events.Reply {
	b.t.Helper()
	r, err := jsapitest.Result(b.Bed, func(done func(*events.Reply, error)) { b.Find(e, 1, done) })
	require.NoError(b.t, err)
	return r
}

func (b *bed) put(m *nats.Msg) error {
	b.t.Helper()
	return b.Done(func(done func(error)) { b.Put(m, done) })
}

func TestResultIsFound(t *testing.T) {
	t.Parallel()
	b := open(t)
	e := jsapitest.Task(1, "order 1", time.Now())
	require.Nil(t, b.find(e))
	for _, body := range []string{"first", "second"} {
		reply := &events.Reply{Status: 201, Headers: []string{"x-a", "b"}, Body: []byte(body), EventID: e.ID, Attempt: 2,
			Version: "1-a", Duration: time.Millisecond}
		m, tooLarge := b.Message(e, reply)
		require.Zero(t, tooLarge)
		require.NoError(t, b.put(m))
		require.Equal(t, reply, b.find(e))
		require.Equal(t, 1, b.Stored(events.StreamResults), "one result for each event")
	}

	again := *e
	again.Origin.Seq = 9
	require.NotNil(t, b.find(&again), "another publish of the same id")
	for name, change := range map[string]func(*events.Event){
		"id":     func(e *events.Event) { e.ID = "order 2" },
		"owner":  func(e *events.Event) { e.Owner = "globex" },
		"worker": func(e *events.Event) { e.Worker = "other" },
		"kind":   func(e *events.Event) { e.Kind = events.Fetch },
	} {
		other := *e
		change(&other)
		require.Nil(t, b.find(&other), "another %s", name)
	}
}

// After Config.ResultAge the event would run again.
func TestResultExpires(t *testing.T) {
	t.Parallel()
	b := open(t, func(c *consumer.Config) { c.ResultAge = 200 * time.Millisecond })
	e := jsapitest.Task(1, "e", time.Now())
	m, _ := b.Message(e, &events.Reply{Status: 200})
	require.NoError(t, b.put(m))
	require.Eventually(t, func() bool { return b.find(e) == nil }, patience, time.Millisecond)
}

// Without a result that can be stored, the message says only that the event has succeeded.
func TestResultThatIsNotKept(t *testing.T) {
	t.Parallel()
	b := open(t)
	size := int(b.NC.MaxPayload())
	for name, c := range map[string]struct {
		reply    *events.Reply
		tooLarge int
	}{
		"large body": {&events.Reply{Status: 200, Body: make([]byte, size)}, size},
		"large headers": {&events.Reply{Status: 200, Headers: []string{"x", strings.Repeat("y", 1<<16)}, Body: []byte("ok")},
			2},
		"streamed body": {&events.Reply{Status: 200, Stream: &events.Stream{}}, 0},
		"dropped body":  {&events.Reply{Status: 200, Dropped: 9 << 20}, 0},
		"no reply":      {nil, 0},
	} {
		e := jsapitest.Task(1, name, time.Now())
		m, tooLarge := b.Message(e, c.reply)
		require.Equal(t, c.tooLarge, tooLarge, name)
		require.NoError(t, b.put(m), name)
		got := b.find(e)
		require.NotNil(t, got.Failure, name)
		require.Equal(t, []any{events.ReasonTooLarge, name}, []any{got.Failure.Reason, got.EventID})
	}
}

func TestResultThatCannotBeStored(t *testing.T) {
	t.Parallel()
	b := open(t)
	require.NoError(t, b.JS.DeleteStream(t.Context(), events.StreamResults))
	e := jsapitest.Task(1, "e", time.Now())
	m, _ := b.Message(e, &events.Reply{Status: 200})
	require.ErrorIs(t, b.put(m), nats.ErrNoResponders)
	_, err := jsapitest.Result(b.Bed, func(done func(*events.Reply, error)) { b.Find(e, 1, done) })
	require.Error(t, err, "an unknown result is not the same as none")
}
