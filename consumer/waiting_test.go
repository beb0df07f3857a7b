package consumer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// An owner that has the maximum number of events waiting gets a clear failure for further ones, and room again when the
// others are gone. Other owners are not delayed, and retries are not lost.
func TestWaitingEventsOfAnOwnerAreBounded(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.OwnerMaxWaiting, cfg.LongRetry = 40, 50*time.Millisecond
	d := &dispatcher{handle: failUntil(2, time.Second)}
	f := start(t, nc, cfg, d)
	delayed := func(owner, body string) {
		publish(t, nc, events.Task, owner, nats.Header{events.HeaderDeliverAfter: {"1h"}}, body)
	}
	letters := func(owner string) (n int) {
		for l, err := range deadletter.NewStore(js, subjects).List(t.Context(), deadletter.Filter{Owner: owner}) {
			require.NoError(t, err)
			require.Equal(t, events.ReasonRate, l.Failure.Reason)
			require.Contains(t, l.Failure.Message, "40 events of owner acme")
			n++
		}
		return n
	}
	waiting := func(owner string) (n int) {
		for _, err := range schedule.NewStore(js, subjects).Waiting(t.Context(), owner, "") {
			require.NoError(t, err)
			n++
		}
		return n
	}
	// An event that is stored while the process counts may be counted twice, until the next count.
	sent := 0
	require.Eventually(t, func() bool {
		delayed("acme", "later")
		sent++
		return letters("acme") >= 20 && waiting("acme") >= 40
	}, patience, time.Millisecond)
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Equal(t, sent, waiting("acme")+letters("acme"))
	t.Logf("%d wait, 40 may", waiting("acme"))

	for range 10 {
		delayed("bob", "later")
	}
	require.Eventually(t, func() bool { return waiting("bob") == 10 }, patience, time.Millisecond)
	publish(t, nc, events.Task, "acme", nil, "fails once")
	require.Eventually(t, func() bool { return f.Stats().Waiting == 1 }, patience, time.Millisecond,
		"its retry waits in the process")
	require.Eventually(t, func() bool { return len(d.events()) == 2 }, patience, time.Millisecond)

	s, err := js.Stream(t.Context(), events.StreamSchedules)
	require.NoError(t, err)
	require.NoError(t, s.Purge(t.Context(), jetstream.WithPurgeSubject(subjects.WaitingEvents("acme", "", ""))))
	require.Eventually(t, func() bool { delayed("acme", "again"); return waiting("acme") >= 5 }, patience,
		20*time.Millisecond)
}

// However few events an owner has waiting, it may not have more bytes waiting than are free.
func TestWaitingBytesOfAnOwnerAreBounded(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.MaxBytes, cfg.OwnerMaxWaiting = 4<<20, 0
	start(t, nc, cfg, &dispatcher{handle: ack})
	refused := func(owner string) (n int) {
		for l, err := range deadletter.NewStore(js, subjects).List(t.Context(), deadletter.Filter{Owner: owner}) {
			require.NoError(t, err)
			require.Equal(t, events.ReasonRate, l.Failure.Reason)
			require.Contains(t, l.Failure.Message, "bytes of events of owner acme wait for their time already")
			n++
		}
		return n
	}
	delayed := func(owner string, size int) {
		publish(t, nc, events.Task, owner, nats.Header{events.HeaderDeliverAfter: {"1h"}}, strings.Repeat("x", size))
	}
	delayed("bob", 100)
	require.Eventually(t, func() bool {
		delayed("acme", 100<<10)
		return refused("acme") >= 5
	}, patience, time.Millisecond)
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Less(t, bytesOf(t, js, events.StreamSchedules), uint64(4<<20))
	for range 5 {
		delayed("bob", 100)
	}
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Zero(t, refused("bob"))
}

// However many events come at once, all before the first of them is stored again.
func TestBytesThatComeAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.MaxBytes, cfg.OwnerMaxWaiting = 8<<20, 0
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	for range 70 { // they wait when the process starts
		publish(t, nc, events.Task, "acme", nats.Header{events.HeaderDeliverAfter: {"1h"}}, strings.Repeat("x", 100<<10))
	}
	start(t, nc, cfg, &dispatcher{handle: ack})
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Less(t, bytesOf(t, js, events.StreamSchedules), uint64(5<<20), "about half of the stream")
}

// When an owner may have no more events waiting, neither in the process nor in JetStream, its failed event ends at
// once.
func TestRetryForWhichThereIsNoRoom(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.OwnerMaxWaiting = 20
	d := &dispatcher{forget: true, handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		return lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{
			Verdict: lifecycle.Retry, Delay: time.Hour, Version: "1-a", Failure: events.Fail(events.ReasonException, "boom"),
			OnDead: &events.DeadHook{Subject: "_INBOX.told"},
		}}, true
	}}
	start(t, nc, cfg, d)
	told, err := nc.SubscribeSync("_INBOX.told")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	dl, n := deadletter.NewStore(js, subjects), 0
	require.Eventually(t, func() bool {
		for range 20 {
			n++
			publish(t, nc, events.Task, "acme", nil, "x")
		}
		return len(letters(t, dl, deadletter.Filter{Owner: "acme"})) >= 40
	}, patience, time.Millisecond)
	all := letters(t, dl, deadletter.Filter{})
	require.Equal(t, events.ReasonException, all[0].Failure.Reason)
	require.Contains(t, all[0].Failure.Message, "boom; not run again: ")
	require.Contains(t, all[0].Failure.Message, "of owner acme, or about as many, wait for their time already")
	require.Equal(t, 1, all[0].Attempts)
	require.Len(t, all[0].History, 1)
	_, err = told.NextMsg(patience)
	require.NoError(t, err)
}

// A publisher may claim that its events are replays. The number of their records is limited.
func TestClaimsOfAnOwnerAreBounded(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	kv := func() int {
		s, err := js.Stream(t.Context(), "KV_"+events.BucketAttempts)
		require.NoError(t, err)
		info, err := s.Info(t.Context(), jetstream.WithSubjectFilter("$KV."+events.BucketAttempts+".replay.>"))
		require.NoError(t, err)
		return len(info.State.Subjects)
	}
	cfg := testConfig()
	cfg.Window = 1024
	start(t, nc, cfg, &dispatcher{handle: ack, inline: true, forget: true})
	const n = 12_500
	publish(t, nc, events.Task, "beta", nats.Header{"Dead-Replay": {fmt.Sprintf("%032x.1.nonce", 1)}}, "x")
	for i := range n {
		require.NoError(t,
			nc.PublishMsg(&nats.Msg{Subject: subjects.Event(events.Task, "acme", "w"),
				Header: nats.Header{"Dead-Replay": {fmt.Sprintf("%032x.1.nonce", i)}}}))
	}
	publish(t, nc, events.Task, "acme", nil, "x")
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Eventually(t, func() bool { m := kv(); return m > 10_000 && m < 11_100 }, patience, 10*time.Millisecond)
}
