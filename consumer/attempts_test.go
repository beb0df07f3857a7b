package consumer_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func never(*lifecycle.Delivery) (lifecycle.Settlement, bool) { return lifecycle.Settlement{}, false }

func shortLease() consumer.Config { return leased(500 * time.Millisecond) }

func TestLeaseOfALongRunIsRenewed(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	cfg := shortLease()
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		time.Sleep(4 * cfg.AckWait)
		return ack(e)
	}}
	start(t, nc, cfg, d)
	publish(t, nc, events.Task, "acme", nil, "long")
	eventuallyStored(t, jetStream(t, nc), events.StreamEvents, 0)
	require.Len(t, d.events(), 1)
}

func TestEventOfACrashedProcessRunsAgainAsTheNextAttempt(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	pub := natstest.Connect(t, srv)
	doomed := natstest.Connect(t, srv)
	first := &dispatcher{handle: never}
	start(t, doomed, shortLease(), first)
	publish(t, pub, events.Task, "acme", nil, "x")
	require.Eventually(t, func() bool { return len(first.events()) == 1 }, patience, time.Millisecond)
	doomed.Close() // the same as kill -9: it sends nothing more

	second := &dispatcher{handle: ack}
	start(t, natstest.Connect(t, srv), shortLease(), second)
	require.Eventually(t, func() bool { return len(second.events()) == 1 }, patience, time.Millisecond)
	e := second.events()[0]
	require.Equal(t, 2, e.Attempt)
	require.Equal(t, 1, e.Crashes)
	eventuallyStored(t, jetStream(t, pub), events.StreamEvents, 0)
}

func TestDrainGivesBackAndThatIsNoAttempt(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	pub := natstest.Connect(t, srv)
	var running atomic.Int64
	first := &dispatcher{}
	release := make(chan struct{})
	first.handle = func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		running.Add(1)
		<-release
		if string(e.Body) == "finish" {
			return ack(e)
		}
		return lifecycle.Settlement{Event: e, Order: lifecycle.Return}, true
	}
	f := start(t, natstest.Connect(t, srv), testConfig(), first)
	publish(t, pub, events.Task, "acme", nil, "finish")
	for range 10 {
		publish(t, pub, events.Task, "acme", nil, "return")
	}
	require.Eventually(t, func() bool { return running.Load() == 11 }, patience, time.Millisecond)
	go func() {
		defer close(release)
		for f.Stats().Credits > 0 { // otherwise returned events may come here again
			runtime.Gosched()
		}
	}()
	f.stop()
	require.Zero(t, f.Stats().Held)
	require.Error(t, f.Ready())

	second := &dispatcher{handle: ack}
	start(t, natstest.Connect(t, srv), testConfig(), second)
	require.Eventually(t, func() bool { return len(second.events()) == 10 }, patience, time.Millisecond)
	for _, e := range second.events() {
		require.Equal(t, "return", string(e.Body))
		require.Equal(t, 1, e.Attempt)
		require.Equal(t, 2, e.Origin.Deliveries)
		require.Zero(t, e.Crashes)
	}
	eventuallyStored(t, jetStream(t, pub), events.StreamEvents, 0)
}

func TestWhatRunsWhenDrainTimeIsOverIsGivenBack(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	pub := natstest.Connect(t, srv)
	first := &dispatcher{handle: never}
	f := start(t, natstest.Connect(t, srv), testConfig(), first)
	publish(t, pub, events.Task, "acme", nil, "x")
	require.Eventually(t, func() bool { return len(first.events()) == 1 }, patience, time.Millisecond)
	f.halt()
	second := &dispatcher{handle: ack}
	start(t, natstest.Connect(t, srv), testConfig(), second)
	require.Eventually(t, func() bool { return len(second.events()) == 1 }, patience, time.Millisecond)
	require.Equal(t, 1, second.events()[0].Attempt)
}

// failUntil fails each event's attempts before the given one, with a delay.
func failUntil(attempt int, delay time.Duration) handler {
	return func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if e.Attempt >= attempt {
			return ack(e)
		}
		return lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{
			Verdict: lifecycle.Retry, Delay: delay, Version: "1-abc", Failure: events.Fail(events.ReasonException, "try %d",
				e.Attempt),
		}}, true
	}
}

func TestRetryWaitsAndCounts(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	var starts []time.Time
	d := &dispatcher{inline: true}
	run := failUntil(3, 300*time.Millisecond)
	d.handle = func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		starts = append(starts, time.Now())
		return run(e)
	}
	f := start(t, nc, shortLease(), d)
	publish(t, nc, events.Task, "acme", nil, "x")
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Eventually(t, func() bool { return f.Stats().Held == 0 }, patience, time.Millisecond)
	require.Len(t, starts, 3)
	require.GreaterOrEqual(t, starts[1].Sub(starts[0]), 300*time.Millisecond)
	require.GreaterOrEqual(t, starts[2].Sub(starts[1]), 300*time.Millisecond)
	require.Equal(t, 3, d.events()[0].Attempt)
	kv, err := js.KeyValue(t.Context(), events.BucketAttempts)
	require.NoError(t, err)
	require.Eventually(t, func() bool { keys, _ := kv.Keys(t.Context()); return len(keys) == 0 }, patience,
		time.Millisecond)
}

// A stream that is deleted and created again counts from 1 again. The records of the earlier events do not apply to the
// new ones.
func TestAttemptsOfADeletedStreamAreNobodys(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	pub := natstest.Connect(t, srv)
	js := jetStream(t, pub)
	cfg := shortLease()
	doomed := natstest.Connect(t, srv)
	first := &dispatcher{handle: failUntil(99, time.Hour)}
	longRetry := cfg
	longRetry.LongRetry = 2 * time.Hour // so that it waits here, with its record
	f := start(t, doomed, longRetry, first)
	before := publish(t, pub, events.Task, "acme", nil, "before")
	kv, err := js.KeyValue(t.Context(), events.BucketAttempts)
	require.NoError(t, err)
	require.Eventually(t, func() bool { keys, _ := kv.Keys(t.Context()); return f.Stats().Waiting == 1 && len(keys) == 1 },
		patience, time.Millisecond)
	doomed.Close()
	makeAgain(t, js)

	doomed = natstest.Connect(t, srv)
	second := &dispatcher{handle: never}
	start(t, doomed, cfg, second)
	require.Equal(t, before, publish(t, pub, events.Task, "acme", nil, "now"))
	require.Eventually(t, func() bool { return len(second.events()) == 1 }, patience, time.Millisecond)
	doomed.Close()

	third := &dispatcher{handle: ack}
	start(t, natstest.Connect(t, srv), cfg, third)
	require.Eventually(t, func() bool { return len(third.events()) == 1 }, patience, time.Millisecond)
	e := third.events()[0]
	require.Equal(t, "now", string(e.Body))
	require.Equal(t, 2, e.Attempt, "one run was started, and it did not fail before")
	require.Equal(t, 1, e.Crashes)
	eventuallyStored(t, js, events.StreamEvents, 0)
}

func TestAttemptsSurviveCrashAndDrainWhileWaiting(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *fleet, close func()){
		"crash": func(_ *fleet, close func()) { close() },
		"drain": func(f *fleet, _ func()) { f.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			srv := natstest.Start(t)
			pub := natstest.Connect(t, srv)
			js := jetStream(t, pub)
			doomed := natstest.Connect(t, srv)
			first := &dispatcher{handle: failUntil(99, time.Hour)}
			cfg := shortLease()
			cfg.LongRetry = 2 * time.Hour // so that it waits here
			f := start(t, doomed, cfg, first)
			publish(t, pub, events.Task, "acme", nil, "x")
			require.Eventually(t, func() bool { return f.Stats().Waiting == 1 }, patience, time.Millisecond)
			kv, err := js.KeyValue(t.Context(), events.BucketAttempts)
			require.NoError(t, err)
			require.Eventually(t, func() bool { keys, _ := kv.Keys(t.Context()); return len(keys) == 1 }, patience,
				time.Millisecond)
			end(f, doomed.Close)

			second := &dispatcher{handle: ack}
			start(t, natstest.Connect(t, srv), shortLease(), second)
			require.Eventually(t, func() bool { return len(second.events()) == 1 }, patience, time.Millisecond)
			require.Equal(t, 2, second.events()[0].Attempt, "one run was started before")
			require.Zero(t, second.events()[0].Crashes)
			eventuallyStored(t, js, events.StreamEvents, 0)
		})
	}
}
