package consumer_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// bytesOf is how many bytes a stream has.
func bytesOf(t *testing.T, js jetstream.JetStream, stream string) uint64 {
	t.Helper()
	s, err := js.Stream(t.Context(), stream)
	require.NoError(t, err)
	return s.CachedInfo().State.Bytes
}

// An owner whose dead letters take more than is free loses its oldest. No other owner loses any.
func TestDeadLettersOfAnOwnerAreBounded(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.DeadLetterBytes = 4 << 20
	start(t, nc, cfg, &dispatcher{handle: dead, inline: true, forget: true})
	dl := deadletter.NewStore(js, subjects)
	for i := range 5 {
		publish(t, nc, events.Task, "beta", nats.Header{"Event-Id": {fmt.Sprint("beta", i)}}, "small")
	}
	eventuallyStored(t, js, events.StreamDead, 5)
	body := strings.Repeat("x", 100<<10)
	const n = 100 // 10 MB
	for i := range n {
		publish(t, nc, events.Task, "acme", nats.Header{"Event-Id": {fmt.Sprint("acme", i)}}, body)
	}
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Eventually(t, func() bool { return bytesOf(t, js, events.StreamDead) <= 2<<20 }, patience, 10*time.Millisecond)
	require.Len(t, letters(t, dl, deadletter.Filter{Owner: "beta"}), 5)
	require.Greater(t, len(letters(t, dl, deadletter.Filter{Owner: "acme"})), 5, "it has about half of the stream")
}

// Results of one owner do not displace those of another, and parts of its bodies do not prevent others' from being
// stored.
func TestResultsAndBodiesOfAnOwnerAreBounded(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.MaxBytes = 64 << 20 // and so 8 MiB of results
	cfg.Catalog = idempotent("acme", "beta")
	start(t, nc, cfg, &dispatcher{handle: echo, forget: true})
	publish(t, nc, events.Task, "beta", nats.Header{"Event-Id": {"b"}}, "first")
	for i := range 200 {
		publish(t, nc, events.Task, "acme", nats.Header{"Event-Id": {fmt.Sprint(i)}}, strings.Repeat("x", 100<<10))
		eventuallyStored(t, js, events.StreamEvents, 0)
	}
	require.Eventually(t, func() bool { return bytesOf(t, js, events.StreamResults) <= 4<<20 }, patience,
		10*time.Millisecond)
	results, err := js.Stream(t.Context(), events.StreamResults)
	require.NoError(t, err)
	_, err = results.GetMsg(t.Context(), 1, jetstream.WithGetMsgSubject(subjects.ResultOwner("beta")))
	require.NoError(t, err, "beta's result is there")

	// Parts that their owner publishes itself. It cannot pretend that they are small, nor that the server says something.
	_, err = js.Publish(t.Context(), subjects.BodyPart("beta", "id", 0), []byte("part"))
	require.NoError(t, err)
	hostile := []nats.Header{
		{"Nats-Msg-Size": {"1"}, "Status": {"409"}, "Description": {"Consumer Deleted"}}, {"Status": {"404"}},
		{"Status": {"503"}},
		{"Status": {"408"}, "Nats-Pending-Messages": {"1000000"}, "Nats-Pending-Bytes": {"0"}}, {"Nats-Msg-Size": {"1"}},
	}
	for i := range 100 {
		m := &nats.Msg{Subject: subjects.BodyPart("acme", "id", i), Header: hostile[i%len(hostile)],
			Data: make([]byte, 900<<10)}
		_, err := js.PublishMsg(t.Context(), m)
		for err != nil && strings.Contains(err.Error(), "no answer in time") { // a busy server takes long to store so much
			_, err = js.PublishMsg(t.Context(), m)
		}
		if err != nil {
			require.ErrorContains(t, err, "maximum bytes")
		}
	}
	require.Eventually(t, func() bool { return bytesOf(t, js, events.StreamBodies) <= 32<<20 }, patience,
		10*time.Millisecond)
	parts, err := js.Stream(t.Context(), events.StreamBodies)
	require.NoError(t, err)
	_, err = parts.GetMsg(t.Context(), 1, jetstream.WithGetMsgSubject(subjects.BodyOwner("beta")))
	require.NoError(t, err)
}

// An owner whose events wait may have as many bytes of them stored by calls and sends as are free. Others' are stored
// all the while.
func TestStoredShareOfTheDoor(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	cfg := testConfig()
	cfg.MaxBytes = 8 << 20
	js := jetStream(t, nc)
	slow := func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if e.Owner == "acme" {
			return lifecycle.Settlement{}, false // it never ends
		}
		return echo(e)
	}
	f := start(t, nc, cfg, &dispatcher{handle: slow, forget: true})
	refused := 0
	for i := range 3000 {
		m := &nats.Msg{Subject: subjects.Call(events.Fetch, "acme", "w"), Data: make([]byte, 4<<10)}
		if i%2 == 0 { // a task that a worker sends
			m.Subject = subjects.Event(events.Task, "acme", "w")
			if failure := f.AdmitSend("acme", 1, m.Size()); failure != nil {
				require.Equal(t, events.ReasonRate, failure.Reason)
				require.ErrorContains(t, errors.New(failure.Message), "bytes of events waiting")
				refused++
				continue
			}
		}
		require.NoError(t, nc.PublishMsg(m))
	}
	require.Positive(t, refused)
	require.Nil(t, call(t, nc, "beta", "x").Failure)
	require.Less(t, bytesOf(t, js, events.StreamEvents), uint64(6<<20))
	require.NoError(t, f.Storage())
}

// Owners that together take all they can, with the smallest events, still leave room, also when processes restart.
func TestStoredSharesOfManyOwners(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	cfg := testConfig()
	cfg.MaxBytes = 8 << 20
	js := jetStream(t, nc)
	busy := func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if e.Owner != "beta" {
			return park(e)
		}
		return echo(e)
	}
	for _, size := range []int{1, 3000} {
		f := start(t, nc, cfg, &dispatcher{forget: true, handle: busy})
		g := start(t, nc, cfg, &dispatcher{forget: true, handle: busy})
		f.SetProcesses(2)
		g.SetProcesses(2)
		for i := range 12_000 {
			require.NoError(t, nc.PublishMsg(&nats.Msg{Subject: subjects.Call(events.Task, fmt.Sprint("acme", i%3), "w"),
				Data: make([]byte, size)}))
			if i%500 == 0 {
				require.Nil(t, call(t, nc, "beta", strings.Repeat("x", 10<<10)).Failure)
			}
		}
		require.Nil(t, call(t, nc, "beta", strings.Repeat("x", 100<<10)).Failure)
		t.Logf("%d bytes of events, %d parked", bytesOf(t, js, events.StreamEvents), bytesOf(t, js, events.StreamParked))
		f.halt()
		g.halt()
	}
}

// A process reports what cannot be stored, and why, and when it can be stored again.
func TestStorageThatIsUsedUpIsTold(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.MaxBytes = 1 << 20
	f := start(t, nc, cfg, &dispatcher{handle: never, forget: true})
	require.NoError(t, f.Storage())
	var err error
	for err == nil {
		_, err = js.Publish(t.Context(), subjects.Event(events.Task, "acme", "w"), make([]byte, 1000),
			jetstream.WithRetryAttempts(0))
	}
	require.ErrorContains(t, err, "maximum bytes")
	require.Eventually(t, func() bool { return f.Storage() != nil }, patience, 10*time.Millisecond)
	require.ErrorContains(t, f.Storage(), "storage: PINWHEEL_EVENTS is full")
	require.NotEmpty(t, f.Stats().Storage)
	require.NoError(t, f.Ready(), "it takes events all the same")
	events, err := js.Stream(t.Context(), events.StreamEvents)
	require.NoError(t, err)
	require.NoError(t, events.Purge(t.Context()))
	require.Eventually(t, func() bool { return f.Storage() == nil }, patience, 10*time.Millisecond)
}
