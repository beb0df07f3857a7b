package consumer_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// The stream of parked events is full, and the window is full of events that were to be parked, too: as soon as there
// is room to run, they do.
func TestFullParkingStopsNobodyForGood(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	cfg := testConfig()
	cfg.MaxBytes, cfg.Window = 1<<20, consumer.MinWindow
	var busy atomic.Bool
	var parks, before atomic.Uint64
	busy.Store(true)
	d := &dispatcher{forget: true, handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if e.Parked && e.Origin.Stream == events.StreamEvents {
			before.Add(1)
		}
		if busy.Load() {
			if !e.Parked {
				parks.Add(1)
			}
			return park(e)
		}
		return ack(e)
	}}
	f := start(t, nc, cfg, d)
	body := []byte(strings.Repeat("x", 25<<10))
	for n := 0; n < 75; {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := js.PublishMsg(ctx, &nats.Msg{Subject: subjects.Event(events.Task, "acme", "w"), Data: body})
		cancel()
		if err == nil {
			n++
		} else {
			require.ErrorContains(t, err, "maximum bytes")
			require.Less(t, n+1, 90)
			<-time.After(5 * time.Millisecond)
		}
	}
	require.Eventually(t, func() bool {
		s := f.Stats()
		return s.Settling > cfg.Window/2 &&
			s.Settling+s.Credits == cfg.Window
	}, patience, time.Millisecond)
	busy.Store(false)
	eventuallyStored(t, js, events.StreamEvents, 0)
	eventuallyStored(t, js, events.StreamParked, 0)
	require.Positive(t, before.Load(), "what could not be parked may run before what is")
	require.Eventually(t, func() bool { return d.through.Load() == parks.Load() }, patience, time.Millisecond,
		"all that was to be parked is through")
}
