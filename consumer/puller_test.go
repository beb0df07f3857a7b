package consumer_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// holding counts what handlers hold until they are released.
type holding struct {
	mu        sync.Mutex
	now, most int
	release   chan struct{}
}

func (h *holding) hold(n int) {
	h.mu.Lock()
	h.now += n
	h.most = max(h.most, h.now)
	h.mu.Unlock()
	<-h.release
	h.mu.Lock()
	h.now -= n
	h.mu.Unlock()
}

func TestWindowIsNeverExceeded(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	h := holding{release: make(chan struct{})}
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		h.hold(1)
		return ack(e)
	}}
	cfg := testConfig()
	cfg.Window = 64
	f := start(t, nc, cfg, d)
	const n = 500
	for i := range n {
		publish(t, nc, events.Task, fmt.Sprintf("o%d", i%20), nil, "x")
	}
	require.Eventually(t, func() bool { return f.Stats().Held >= cfg.Window*3/4 }, patience, time.Millisecond)
	for range n {
		s := f.Stats()
		require.LessOrEqual(t, s.Held, cfg.Window)
		h.release <- struct{}{}
	}
	eventuallyStored(t, jetStream(t, nc), events.StreamEvents, 0)
	require.LessOrEqual(t, h.most, cfg.Window)
	require.Len(t, d.events(), n)
}

// Long events take several places. The lanes know only short ones, and have asked for as many as the window has places.
func TestWindowBoundsBytes(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	h := holding{release: make(chan struct{})}
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if len(e.Body) > consumer.PlaceBytes {
			h.hold(len(e.Body))
		}
		return ack(e)
	}}
	cfg := testConfig()
	cfg.Window, cfg.MaxBytes = 128, 200<<20
	f := start(t, nc, cfg, d)
	const short, n = 2000, 128
	for i := range short {
		publish(t, nc, events.Task, fmt.Sprintf("o%d", i%20), nil, "x")
	}
	eventuallyStored(t, jetStream(t, nc), events.StreamEvents, 0)
	body := strings.Repeat("x", 900<<10) // four places
	for i := range n {
		publish(t, nc, events.Task, fmt.Sprintf("o%d", i%20), nil, body)
	}
	require.Eventually(t, func() bool { return f.Stats().Held >= cfg.Window/4*3/4 }, patience, time.Millisecond)
	for range n {
		h.release <- struct{}{}
	}
	eventuallyStored(t, jetStream(t, nc), events.StreamEvents, 0)
	// A lane may always ask for one message.
	require.LessOrEqual(t, h.most, cfg.Window*consumer.PlaceBytes+events.Lanes*len(body))
	t.Logf("at most %d MB were held", h.most>>20)
}

// A publisher's headers never decide what kind of message it is.
func TestHostileHeadersAreEventsLikeOthers(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	d := &dispatcher{handle: ack}
	f := start(t, nc, testConfig(), d)
	hostile := []nats.Header{
		{"Status": {"409"}, "Description": {"Consumer Deleted"}},
		{"Status": {"409"}, "Description": {"Leadership Change"}},
		{"Status": {"400"}, "Description": {"Bad Request"}},
		{"Status": {"404"}, "Description": {"No Messages"}},
		{"Status": {"408"}, "Nats-Pending-Messages": {"1000000"}, "Nats-Pending-Bytes": {"0"}},
		{"Status": {"100"}, "Description": {"Idle Heartbeat"}},
		{"Status": {"503"}},
		{"Nats-Pin-Id": {"mine"}},
		{"Nats-Last-Consumer": {"7"}, "Nats-Consumer-Stalled": {"$JS.FC.x"}},
	}
	// Some with the status inline, as only the raw protocol can write it.
	const each = 20
	for i := range each {
		for _, h := range hostile {
			publish(t, nc, events.Task, fmt.Sprintf("o%d", i), h, "")
		}
	}
	require.Eventually(t, func() bool { return len(d.events()) == each*len(hostile) }, patience, time.Millisecond)
	eventuallyStored(t, jetStream(t, nc), events.StreamEvents, 0)
	require.Zero(t, f.Stats().Stalls)
	publish(t, nc, events.Task, "o1", nil, "after")
	require.Eventually(t, func() bool { return len(d.events()) == each*len(hostile)+1 }, patience, time.Millisecond)
	for _, e := range d.events() {
		require.Equal(t, 1, e.Attempt)
	}
}

func TestServerRestartUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	r := startRestartable(t)
	nc, pub := r.connect(), r.connect()
	var mu sync.Mutex
	ran := map[string]int{}
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		mu.Lock()
		ran[string(e.Body)]++
		mu.Unlock()
		time.Sleep(5 * time.Millisecond) // work
		return ack(e)
	}}
	f := start(t, nc, leased(2*time.Second), d)
	const n = 3000
	js := jetStream(t, pub)
	for i := range n {
		_, err := js.PublishMsgAsync(&nats.Msg{
			Subject: subjects.Event(events.Task, fmt.Sprintf("o%d", i%40), "w"), Data: []byte(fmt.Sprint(i)),
		}, jetstream.WithStallWait(patience))
		require.NoError(t, err)
		if i == n/2 {
			<-js.PublishAsyncComplete()
			r.srv.Close()
			r.up()
			require.Eventually(t, pub.IsConnected, patience, time.Millisecond)
			require.Eventually(t, func() bool { _, err := js.AccountInfo(t.Context()); return err == nil }, patience,
				time.Millisecond)
		}
	}
	<-js.PublishAsyncComplete()
	eventuallyStored(t, js, events.StreamEvents, 0)
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, ran, n)
	again := 0
	for _, times := range ran {
		again += times - 1
	}
	t.Logf("%d of %d events ran again after the restart; stalls %d", again, n, f.Stats().Stalls)
	require.Eventually(t, func() bool { return f.Stats().Held == 0 }, patience, time.Millisecond)
}

func TestConsumersAndStreamDeletedUnderUsAreMadeAgain(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	d := &dispatcher{handle: ack}
	start(t, nc, testConfig(), d)
	publish(t, nc, events.Task, "acme", nil, "before")
	require.Eventually(t, func() bool { return len(d.events()) == 1 }, patience, time.Millisecond)
	for lane := range events.Lanes {
		require.NoError(t, js.DeleteConsumer(t.Context(), events.StreamEvents, fmt.Sprintf("lane-%d", lane)))
	}
	for i := range 30 {
		publish(t, nc, events.Task, fmt.Sprintf("o%d", i), nil, "after")
	}
	require.Eventually(t, func() bool { return len(d.events()) == 31 }, patience, time.Millisecond)

	require.NoError(t, js.DeleteStream(t.Context(), events.StreamEvents))
	// A publish that meets the stream while it goes is never answered: short waits, and one id.
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := js.Publish(ctx, subjects.Event(events.Task, "acme", "w"), nil, jetstream.WithMsgID("new stream"))
		return err == nil
	}, patience, time.Millisecond)
	require.Eventually(t, func() bool { return len(d.events()) == 32 }, patience, time.Millisecond)
}

func TestEventHeldWhenItsConsumerIsDeletedIsNotRunTwice(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	release := make(chan struct{})
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) { <-release; return ack(e) }}
	f := start(t, nc, testConfig(), d)
	for i := range 20 {
		publish(t, nc, events.Task, "acme", nil, fmt.Sprint(i))
	}
	require.Eventually(t, func() bool { return len(d.events()) == 20 }, patience, time.Millisecond)
	lane := d.events()[0].Origin.Consumer
	require.NoError(t, js.DeleteConsumer(t.Context(), events.StreamEvents, lane))
	require.Eventually(t, func() bool {
		c, err := js.Consumer(t.Context(), events.StreamEvents, lane)
		return err == nil && c.CachedInfo().NumAckPending == 20
	}, patience, time.Millisecond, "all delivered again")
	close(release)
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Eventually(t, func() bool { return f.Stats().Held == 0 }, patience, time.Millisecond)
	require.Len(t, d.events(), 20)
}

func TestTwoConsumersShare(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	pub := natstest.Connect(t, srv)
	slow := func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) { time.Sleep(time.Millisecond); return ack(e) }
	a, b := &dispatcher{handle: slow}, &dispatcher{handle: slow}
	start(t, natstest.Connect(t, srv), testConfig(), a)
	start(t, natstest.Connect(t, srv), testConfig(), b)
	const n = 2000
	js := jetStream(t, pub)
	for i := range n {
		_, err := js.PublishMsgAsync(&nats.Msg{Subject: subjects.Event(events.Task, "acme", "w"),
			Data: []byte(strings.Repeat("x", i%50))}, jetstream.WithStallWait(patience))
		require.NoError(t, err)
	}
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Len(t, append(a.events(), b.events()...), n)
	require.Greater(t, len(a.events()), n/5)
	require.Greater(t, len(b.events()), n/5)
}
