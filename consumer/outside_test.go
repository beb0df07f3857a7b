package consumer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// Events whose letters are not written yet take no place in the window: others behind them in their lane run. Only so
// many wait like this, and they and their places are free again when the letters are written.
func TestEventsThatWaitForLettersTakeNoPlace(t *testing.T) {
	t.Parallel()
	nc := connect(t)
	js := jetStream(t, nc)
	d := &dispatcher{handle: func(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
		if e.Owner == "good" {
			return ack(e)
		}
		return dead(e)
	}}
	cfg := testConfig()
	cfg.Window = 32
	f := start(t, nc, cfg, d)
	undo := refuseLetters(t, nc)
	const n = 4 * 32
	for i := range n {
		publish(t, nc, events.Task, []string{"good", "bad", fmt.Sprint("bad", i)}[1+i%2], nil, "x")
	}
	require.Eventually(t, func() bool { return f.Stats().Held == n }, patience, time.Millisecond)
	for range 2 {
		publish(t, nc, events.Task, "good", nil, "x")
		publish(t, nc, events.Task, "bad", nil, "x")
	}
	eventuallyStored(t, js, events.StreamEvents, n+2)
	require.Eventually(t, func() bool { return f.Stats().Held == n+2 }, patience, time.Millisecond)
	for i := range 64 {
		publish(t, nc, events.Task, fmt.Sprint("more", i), nil, "x")
	}
	full := func() bool { s := f.Stats(); return s.Credits == 0 && s.Held == n+cfg.Window }
	require.Eventually(t, full, patience, time.Millisecond, "the bound is kept")
	undo()
	eventuallyStored(t, js, events.StreamDead, n+2+64)
	eventuallyStored(t, js, events.StreamEvents, 0)
	require.Eventually(t, func() bool { s := f.Stats(); return s.Held == 0 }, patience, time.Millisecond)
}
