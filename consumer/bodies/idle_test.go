package bodies

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// A requester is idle when there is more of the body and it takes none. It is not idle when the source pauses.
func TestWhoIsAnIdleRequester(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		sent, granted int64
		waits         time.Time
		idle          bool
	}{
		"source pauses, no credit left":   {10, 10, time.Time{}, false},
		"source pauses, some credit left": {5, 10, time.Time{}, false},
		"more is there, no credit left":   {10, 10, now, true},
		"more is there, and on its way":   {5, 10, now, false},
		"more is there, since just now":   {10, 10, now.Add(streamIdle), false},
	} {
		cancelled := 0
		o := &Body{
			event: &lifecycle.Delivery{}, from: &events.Stream{Cancel: func(string) { cancelled++ }},
			sent: tc.sent, granted: tc.granted, waits: tc.waits,
		}
		s := &Chunks{open: map[string]*Body{"x": o}}
		s.Tick(now.Add(streamIdle + time.Second))
		require.Equal(t, tc.idle, cancelled == 1, name)
	}
}
