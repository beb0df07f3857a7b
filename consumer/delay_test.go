package consumer_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func TestDelayedEventsRunAtTheirTime(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	var mu sync.Mutex
	ran := map[string]time.Time{}
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		mu.Lock()
		defer mu.Unlock()
		ran[e.ID] = time.Now()
		return echo(e)
	}}
	start(t, nc, testConfig(), d)
	to, sub := inbox(t, nc)
	began := time.Now()
	at := began.Add(700 * time.Millisecond)
	due := map[string]time.Time{}
	for i := range 50 {
		id := fmt.Sprint("at", i)
		due[id] = at
		publish(t, nc, events.Fetch, "acme", nats.Header{
			"Reply-To": {to}, "Event-Id": {id}, "deliver-at": {at.UTC().Format(time.RFC3339Nano)}, "X-Y": {"z"},
			"Http-Url": {"/p?q"},
			// Headers that NATS or Pinwheel would act on are the owner's own, and harmless.
			"Nats-Msg-Id": {id}, "Status": {"409"}, "Parked-Key": {"forbid~x"}, "Parked-Stream": {"S"}, "Parked-Record": {"{}"},
		}, fmt.Sprint("body", i))
	}
	due["after"] = began.Add(300 * time.Millisecond)
	publish(t, nc, events.Task, "acme", nats.Header{"Reply-To": {to}, "Event-Id": {"after"}, "Deliver-After": {"0.3"}},
		"b")
	publish(t, nc, events.Task, "acme", nats.Header{"Reply-To": {to}, "Event-Id": {"past"},
		"Deliver-At": {"2020-01-01T00:00:00Z"}}, "b")
	for range 52 {
		_, err := sub.NextMsg(patience)
		require.NoError(t, err)
	}
	eventuallyStored(t, js, events.StreamSchedules, 0)
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Len(t, d.events(), 52)
	worst := time.Duration(0)
	for id, when := range due {
		late := ran[id].Sub(when)
		require.GreaterOrEqual(t, late, -time.Millisecond, id)
		worst = max(worst, late)
	}
	t.Logf("at most %s late", worst)
	for _, e := range d.events() {
		require.Equal(t, 1, e.Attempt)
		require.Zero(t, e.Crashes)
		if e.ID != "at7" {
			continue
		}
		require.Equal(t, events.StreamSchedules, e.Origin.Stream)
		require.Equal(t, events.StreamEvents, e.FirstStored().Stream)
		require.Equal(t, "body7", string(e.Body))
		require.Equal(t, []string{"409"}, e.Header["Status"])
		require.Equal(t, []string{"at7"}, e.Header["Nats-Msg-Id"])
		require.Equal(t, []string{"forbid~x"}, e.Header["Parked-Key"])
		require.Equal(t, []string{"z"}, e.Header["X-Y"])
		require.Equal(t, "http://w.acme.pinwheel/p?q", e.URL)
		require.Equal(t, to, e.ReplyTo)
		require.Equal(t, events.OverlapAllow, e.Overlaps())
	}
}

func TestMalformedDelays(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	start(t, nc, testConfig(), &dispatcher{handle: echo})
	to, sub := inbox(t, nc)
	publish(t, nc, events.Fetch, "acme", nats.Header{"Reply-To": {to}, "Deliver-After": {"-1"}}, "")
	publish(t, nc, events.Task, "acme", nats.Header{"Deliver-At": {"soon"}}, "")
	publish(t, nc, events.Task, "acme", nats.Header{"Deliver-At": {"2999-01-01T00:00:00Z"}}, "")
	m, err := sub.NextMsg(patience)
	require.NoError(t, err)
	require.Equal(t, "400", m.Header.Get("Http-Status"))
	require.Contains(t, m.Header.Get("Error"), "Deliver-After")
	eventuallyStored(t, js, events.StreamDead, 2)
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Zero(t, stored(t, js, events.StreamSchedules))
}

// A retry with a long delay leaves the process, and comes back with the event's record.
func TestLongRetriesLeaveTheWindow(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	release := make(chan struct{})
	d := &dispatcher{}
	attempts := make(chan int, 10)
	d.handle = func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		attempts <- e.Attempt
		if e.Attempt < 4 {
			return lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{
				Verdict: lifecycle.Retry, Delay: 150 * time.Millisecond, Version: "1-a",
				Failure: events.Fail(events.ReasonException, "try %d", e.Attempt),
			}}, true
		}
		<-release
		return dead(e)
	}
	cfg := testConfig()
	cfg.LongRetry = 100 * time.Millisecond
	f := start(t, nc, cfg, d)
	began := time.Now()
	seq := publish(t, nc, events.Task, "acme", nats.Header{"Event-Id": {"x"}}, "x")
	eventuallyStored(t, js, events.StreamSchedules, 1)
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Eventually(t, func() bool { return f.Stats().Held == 0 }, patience, time.Millisecond)
	require.Eventually(t, func() bool { return len(d.events()) == 4 }, patience, time.Millisecond)
	require.GreaterOrEqual(t, time.Since(began), 300*time.Millisecond, "three delays, by a clock that is known up to the way to NATS")
	close(release)
	eventuallyStored(t, js, events.StreamDead, 1)
	eventuallyStored(t, js, events.StreamSchedules, 0)
	for i, e := range d.events() {
		require.Equal(t, i+1, <-attempts)
		require.Zero(t, e.Crashes)
	}
	l := letters(t, deadletter.NewStore(js, subjects), deadletter.Filter{Owner: "acme"})[0]
	require.Equal(t, 4, l.Attempts)
	require.Equal(t, events.StreamEvents, l.Stream)
	require.Equal(t, seq, l.StreamSeq)
	require.Contains(t, l.Subject, "pinwheel.events.")
	require.Equal(t, 1, l.History[0].Attempt)
	require.Equal(t, l.History[0].At, l.FirstAt, "the first failure is that of the first run")
}

// An owner's retries take at most its part of the window, however soon they are due.
func TestWaitingRetriesAreBounded(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if e.Owner == "noisy" && e.Attempt == 1 {
			return lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{
				Verdict: lifecycle.Retry, Delay: 3 * time.Second, Version: "1-a", Failure: events.Fail(events.ReasonException, "x"),
			}}, true
		}
		return ack(e)
	}}
	require.NoError(t, consumer.CreateAssets(t.Context(), js, testConfig(), nc.MaxPayload()))
	const n = 200 // more than the window; they are stored before the first one runs, so that all wait at the same time
	for i := range n {
		publish(t, nc, events.Task, "noisy", nil, fmt.Sprint(i))
	}
	f := start(t, nc, testConfig(), d)
	window := testConfig().Window
	eventuallyStored(t, js, events.StreamSchedules, n-window/4)
	require.Eventually(t, func() bool { return f.Stats().Waiting == window/4 }, patience, time.Millisecond)
	publish(t, nc, events.Task, "quiet", nil, "x")
	eventuallyStored(t, js, events.StreamEvents, window/4)
	eventuallyStored(t, js, events.StreamSchedules, 0)
	eventuallyStored(t, js, events.StreamEvents, 0)
	count := map[string]int{}
	for _, e := range d.events() {
		count[string(e.Body)]++
		require.LessOrEqual(t, e.Attempt, 2)
	}
	for i := range n {
		require.Equal(t, 2, count[fmt.Sprint(i)])
	}
}

// A delayed event can be run by any process.
func TestAnotherProcessRunsWhatWaits(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	pub := natstest.Connect(t, srv)
	js := jetStream(t, pub)
	f := start(t, natstest.Connect(t, srv), testConfig(), &dispatcher{handle: ack})
	publish(t, pub, events.Task, "acme", nats.Header{"Deliver-After": {"3s"}}, "x")
	eventuallyStored(t, js, events.StreamSchedules, 1)
	f.stop()
	second := &dispatcher{handle: ack}
	start(t, natstest.Connect(t, srv), testConfig(), second)
	eventuallyStored(t, js, events.StreamSchedules, 0)
	require.Len(t, second.events(), 1)
	require.Equal(t, 1, second.events()[0].Attempt)
}

// An event is either cancelled or run, whichever comes first: never both, never neither.
func TestCancelOrRun(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	nc := connect(t)
	js := jetStream(t, nc)
	d := &dispatcher{handle: ack}
	start(t, nc, testConfig(), d)
	book := schedule.NewStore(js, subjects)
	const n = 150
	for i := range n {
		publish(t, nc, events.Task, "acme", nats.Header{"Event-Id": {fmt.Sprint(i)},
			"Deliver-After": {fmt.Sprint(0.5 + 2*random.Float64())}}, "x")
	}
	cancelled := map[string]int{}
	for _, i := range random.Perm(n) {
		id := fmt.Sprint(i)
		c, err := book.Cancel(t.Context(), "acme", "w", id)
		require.NoError(t, err)
		cancelled[id] = c
		time.Sleep(time.Duration(random.IntN(10)) * time.Millisecond)
	}
	eventuallyStored(t, js, events.StreamEvents, 0)
	eventuallyStored(t, js, events.StreamSchedules, 0)
	ran := map[string]int{}
	for _, e := range d.events() {
		ran[e.ID]++
	}
	total := 0
	for i := range n {
		id := fmt.Sprint(i)
		require.Equal(t, 1, cancelled[id]+ran[id], "event %s: cancelled %d, ran %d", id, cancelled[id], ran[id])
		total += cancelled[id]
	}
	t.Logf("%d of %d cancelled", total, n)
}

// Headers that steer JetStream's schedules are refused from publishers, and removed from calls.
func TestHostileScheduleHeaders(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	d := &dispatcher{handle: echo}
	start(t, nc, testConfig(), d)
	at := "@at " + time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for name, value := range map[string]string{"Nats-Schedule": at, "Nats-Schedule-Target": "pinwheel.events.task.b.w",
		"Nats-Rollup": "all", "Nats-TTL": "1s"} {
		h := nats.Header{"Nats-Schedule": {at}, "Nats-Schedule-Target": {"pinwheel.events.task.b.w"}}
		h.Set(name, value)
		_, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: subjects.Event(events.Task, "acme", "w"), Header: h})
		require.Error(t, err, name)
		m := &nats.Msg{Subject: subjects.Call(events.Task, "acme", "w"), Header: h, Data: []byte(name)}
		m.Header.Set("Nats-Scheduler", "pinwheel.schedules.cron.acme.w.1")
		m.Header.Set("Nats-Schedule-Next", "purge")
		m.Header.Set("Deliver-After", "0.1")
		answer, err := nc.RequestMsg(m, patience)
		require.NoError(t, err, name)
		require.Equal(t, name, string(answer.Data))
	}
	require.Len(t, d.events(), 4)
	for _, e := range d.events() {
		require.Equal(t, "acme", e.Owner)
		require.Empty(t, e.Header["Nats-Schedule"])
	}
	eventuallyStored(t, js, events.StreamSchedules, 0)
}

// Where an event waits does not matter: whether its handler asked for the next run is known when it comes back.
func TestAskedForSurvivesALongDelay(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	asked := make(chan bool, 4)
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		asked <- e.Asked
		e.Asked = false // of this process only
		if e.Attempt > 3 {
			return ack(e)
		}
		return lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{
			Verdict: lifecycle.Retry, Delay: 150 * time.Millisecond, Version: "1-a", Asked: e.Attempt != 2, Batch: 7,
			Failure: events.Fail(events.ReasonException, "x"),
		}}, true
	}}
	cfg := testConfig()
	cfg.LongRetry = 100 * time.Millisecond
	start(t, nc, cfg, d)
	publish(t, nc, events.Task, "acme", nil, "x")
	eventuallyStored(t, js, events.StreamSchedules, 1)
	eventuallyStored(t, js, events.StreamSchedules, 0)
	for i, want := range []bool{false, true, false, true} {
		require.Equal(t, want, <-asked, i)
	}
}
