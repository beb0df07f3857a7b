package consumer_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func TestParkedEventsRunWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	var mu sync.Mutex
	busy := true
	ran := map[string]*lifecycle.Delivery{}
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		mu.Lock()
		defer mu.Unlock()
		if busy {
			return park(e)
		}
		ran[string(e.Body)] = e
		return echo(e)
	}}
	f := start(t, nc, testConfig(), d)
	to, sub := inbox(t, nc)
	const n = 100
	for i := range n {
		publish(t, nc, events.Task, "acme", nats.Header{
			"Reply-To": {to}, "Event-Id": {fmt.Sprint("id", i)}, "Status": {"409"}, "Nats-Msg-Id": {fmt.Sprint("m", i)},
			"Parked-X": {"y"},
		}, fmt.Sprint(i))
	}
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Equal(t, n, stored(t, js, events.StreamParked))
	mu.Lock()
	busy = false
	mu.Unlock()
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
				f.Room("acme", 20)
			}
		}
	}()
	eventuallyStored(t, js, events.StreamParked, 0)
	for range n {
		_, err := sub.NextMsg(patience)
		require.NoError(t, err)
	}
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, ran, n)
	e := ran["7"]
	require.Equal(t, "id7", e.ID)
	require.Equal(t, []string{"409"}, e.Header["Status"])
	require.Equal(t, []string{"m7"}, e.Header["Nats-Msg-Id"])
	require.Equal(t, []string{"y"}, e.Header["Parked-X"])
	require.Equal(t, events.StreamParked, e.Origin.Stream)
	require.True(t, e.Parked)
	require.Equal(t, 1, e.Attempt)
}

// However many events have to be parked, few are on their way at once, so they do not block the server's other work.
func TestParksAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	const n, round = 1500, 64
	srv := natstest.Start(t)
	watch, pub := natstest.Connect(t, srv), natstest.Connect(t, srv)
	js := jetStream(t, watch)
	var sent, done, most atomic.Int64
	_, err := watch.Subscribe(subjects.AllParked(), func(*nats.Msg) { sent.Add(1) })
	require.NoError(t, err)
	require.NoError(t, watch.Flush())
	cfg := testConfig()
	cfg.Window = 1024
	cfg.Step = func(s consumer.Step) {
		if s == consumer.StepParkStored {
			most.Store(max(most.Load(), sent.Load()-done.Add(1)+1))
		}
	}
	start(t, pub, cfg, &dispatcher{handle: ack}).stop() // the streams are there
	for i := range n {
		publish(t, pub, events.Task, "acme", nil, fmt.Sprint(i))
	}
	start(t, natstest.Connect(t, srv), cfg,
		&dispatcher{forget: true, handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
			s, _ := park(e)
			return s, !e.Parked
		}})
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Equal(t, n, stored(t, js, events.StreamParked))
	t.Logf("at most %d at once", most.Load())
	require.LessOrEqual(t, most.Load(), int64(2*round), "one round, and another after an answer that took seconds")
}

func TestAnotherProcessFindsParkedEvents(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	pub := natstest.Connect(t, srv)
	js := jetStream(t, pub)
	first := &dispatcher{handle: park}
	f := start(t, natstest.Connect(t, srv), testConfig(), first)
	publish(t, pub, events.Task, "acme", nil, "x")
	eventuallyStored(t, js, events.StreamParked, 1)
	eventuallyStored(t, js, events.StreamEvents, 0)
	f.stop()
	second := &dispatcher{handle: dead}
	start(t, natstest.Connect(t, srv), testConfig(), second)
	eventuallyStored(t, js, events.StreamDead, 1)
	eventuallyStored(t, js, events.StreamParked, 0)
	d := letters(t, deadletter.NewStore(js, subjects), deadletter.Filter{Owner: "acme"})[0]
	require.Equal(t, "x", string(d.Body))
	require.Equal(t, "task", d.Kind)
	require.Equal(t, events.StreamEvents, d.Stream, "where it was stored first")
}

// Very many owners with parked events have them pulled some owners at a time, and leave nothing behind.
func TestManyParkedOwners(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	const owners, each = 300, 3
	var busy atomic.Bool
	busy.Store(true)
	d := &dispatcher{forget: true, handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if busy.Load() {
			return park(e)
		}
		return ack(e)
	}}
	f := start(t, nc, testConfig(), d)
	for i := range each {
		for o := range owners {
			publish(t, nc, events.Task, fmt.Sprint("owner", o), nil, fmt.Sprint(i))
		}
	}
	eventuallyStored(t, js, events.StreamEvents, 0)
	busy.Store(false)
	most := 0
	require.Eventually(t, func() bool {
		most = max(most, f.Stats().ParkedLanes)
		return stored(t, js, events.StreamParked) == 0
	}, patience, 5*time.Millisecond)
	require.Less(t, most, owners*2/3, "64 at a time, and those whose place has gone stay until what they asked for has come")
	require.Positive(t, most)
	require.Eventually(t, func() bool { return f.Stats().ParkedLanes == 0 }, patience, 10*time.Millisecond)
	s, err := js.Stream(t.Context(), events.StreamParked)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := s.Info(t.Context())
		return err == nil && info.State.Consumers == 0
	}, 2*patience, 100*time.Millisecond, "consumers of owners that have nothing parked vanish")
}

// Of events that do not end more come although their lane is held back, and all end when they may.
func TestHeldBackLaneGoesOn(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	release := make(chan struct{})
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		<-release
		s, ok := ack(e)
		s.Brief = true
		return s, ok
	}}
	cfg := testConfig()
	cfg.LaneHeld = 16
	f := start(t, nc, cfg, d)
	const n = 500
	for range n {
		publish(t, nc, events.Task, "acme", nil, "x")
	}
	require.Eventually(t, func() bool { return f.Stats().Held > cfg.LaneHeld*3/2 }, patience, time.Millisecond)
	close(release)
	eventuallyStored(t, jetStream(t, nc), events.StreamEvents, 0)
	require.Len(t, d.events(), n)
}
