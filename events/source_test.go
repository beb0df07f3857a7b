package events_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

var sourceTime = time.Date(2026, 1, 2, 15, 4, 5, 678, time.UTC)

func orderMessage() events.SourceMessage {
	return events.SourceMessage{Stream: "ORDERS", Subject: "orders.created.7", Sequence: 7, Created: time.Unix(0, 42),
		Time: sourceTime}
}

func decoded(subject string, h events.Header, body string) (*events.Event, *events.Failure) {
	d := events.Decoder{Subjects: "pinwheel", ReplyPrefixes: []string{"_INBOX."}}
	return d.Decode(events.Origin{Stream: events.StreamEvents, Subject: subject, Seq: 9}, h, []byte(body), sourceTime)
}

func handlerSees(e *events.Event) events.Header {
	h := events.Header{}
	e.UserHeaders(func(name, value string) { h[name] = append(h[name], value) })
	return h
}

// What a publisher writes decides nothing, and the handler gets what else it wrote.
func TestHeadersOfASourceAreTheFleets(t *testing.T) {
	t.Parallel()
	theirs := events.Header{
		"Customer": {"7", "8"}, "Content-Type": {"text/plain"}, "traceparent": {"00-1-2-01"},
		"source-stream": {"FORGED"}, "Source-Time": {"never"}, "Source-Fault": {"x"}, "Source-App": {"shop"},
		"reply-to": {"_INBOX.thief"}, "Event-Id": {"1"}, "Deadline": {"2000-01-01T00:00:00Z"}, "Deliver-After": {"1h"},
		"Worker-Version": {"1"}, "Http-Method": {"PUT"}, "Http-Header-X": {"y"}, "Nats-Msg-Id": {"z"}, "Status": {"409"},
		"Dead-Replay": {"a.1.b"}, "Dead-Of": {"x"}, "dead-replays": {"9"}, "Parked-Attempt": {"3"}, "Body-Id": {"b"},
	}
	e, failure := decoded("pinwheel.events.3.task.acme.hello.source", orderMessage().Headers(theirs, "secret"), "not JSON")
	require.Nil(t, failure)
	require.True(t, e.Sourced)
	require.Equal(t, "source:ORDERS:42:7", e.ID)
	require.Equal(t, events.Task, e.Kind)
	require.Equal(t, "acme/hello", e.Target())
	require.Empty(t, e.ReplyTo)
	require.Empty(t, e.Version)
	require.Zero(t, e.Deadline)
	require.Zero(t, e.DeliverAt)
	require.Zero(t, e.Replays())
	require.Equal(t, events.Header{
		"Customer": {"7", "8"}, "Content-Type": {"text/plain"}, "traceparent": {"00-1-2-01"}, "Source-App": {"shop"},
		"Source-Stream": {"ORDERS"}, "Source-Subject": {"orders.created.7"}, "Source-Sequence": {"7"},
		"Source-Time": {"2026-01-02T15:04:05.000000678Z"},
	}, handlerSees(e))
}

// Publishers cannot make the server store an event under a subject of sources, and their Source- headers do not arrive.
func TestSourcesCannotBeForged(t *testing.T) {
	t.Parallel()
	h := orderMessage().Headers(nil, "x")
	for _, subject := range []string{
		"pinwheel.events.3.task.acme.hello", "pinwheel.events.3.source.acme.hello", "pinwheel.events.3.task.acme.source",
		"pinwheel.events.3.task.source.source", "other.events.3.task.acme.hello.source",
	} {
		e, _ := decoded(subject, h, "")
		require.False(t, e.Sourced, subject)
		for name := range handlerSees(e) {
			require.False(t, strings.HasPrefix(name, "Source-"), "%s: %s", subject, name)
		}
	}
	e, failure := decoded("pinwheel.events.3.task.acme.source", nil, "")
	require.Nil(t, failure)
	require.Equal(t, "source", e.Worker)
	e, failure = decoded("pinwheel.events.3.task.acme.source.source", h, "")
	require.Nil(t, failure)
	require.Equal(t, "source", e.Worker)
	require.True(t, e.Sourced)
}

func TestAMessageThatIsNoEventIsMalformed(t *testing.T) {
	t.Parallel()
	m := orderMessage()
	m.Fault = "it has 2000000 bytes"
	_, failure := decoded("pinwheel.events.3.task.acme.hello.source", m.Headers(nil, "x"), "")
	require.NotNil(t, failure)
	require.Equal(t, events.ReasonMalformed, failure.Reason)
	require.Contains(t, failure.Message, "message 7 of stream ORDERS is no event: it has 2000000 bytes")
}

// An event of a source stays one when it is parked, and when its dead letter is replayed, unless somebody else wrote
// the letter, or what it says of its source.
func TestSourcesOutliveParkingAndReplays(t *testing.T) {
	t.Parallel()
	subject := events.Subjects("pinwheel").Source("acme", "hello")
	e, failure := decoded(subject, orderMessage().Headers(nil, "x"), "7")
	require.Nil(t, failure)
	d := events.Decoder{Subjects: "pinwheel"}
	back, _, failure := d.DecodeParked(events.Origin{Subject: "pinwheel.parked.acme.task.hello", Seq: 3},
		events.EncodeParked(e, events.FirstRun), e.Body, time.Now())
	require.Nil(t, failure)
	require.True(t, back.Sourced)
	require.Equal(t, handlerSees(e), handlerSees(back))

	letter := &events.DeadLetter{Owner: "acme", Worker: "hello", Kind: "task", Subject: subject, EventID: e.ID,
		Header: e.Header, Body: e.Body}
	replayed := func(l *events.DeadLetter, to events.Target) string {
		to2, h, err := l.Replay("pinwheel", to)
		require.NoError(t, err)
		require.Equal(t, "ORDERS", h.Get(events.HeaderSourceStream))
		return to2
	}
	ordinary := "pinwheel.events.task.acme.hello"
	require.Equal(t, subject, replayed(letter, events.Target{}))
	require.Equal(t, subject, replayed(letter, events.Target{Version: "3"}))
	require.Equal(t, "pinwheel.events.task.acme.other", replayed(letter, events.Target{Worker: "other"}))
	imported := *letter
	imported.Imported = time.Now()
	require.Equal(t, ordinary, replayed(&imported, events.Target{}))
	edited, err := letter.Edit(events.Edit{Body: []byte("8")}, time.Now())
	require.NoError(t, err)
	require.Equal(t, subject, replayed(edited, events.Target{}))
	edited, err = letter.Edit(events.Edit{Set: events.Header{"source-time": {"x"}}}, time.Now())
	require.NoError(t, err)
	require.Equal(t, ordinary, replayed(edited, events.Target{}))
}
