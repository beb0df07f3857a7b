package consumer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// Long events that wait for their next run take the places that they have in the window.
func TestRetriesCountPlaces(t *testing.T) {
	t.Parallel()
	const window = 64
	r := newRetries()
	entryOf := func(owner string, bytes int) *entry {
		return &entry{event: lifecycle.Delivery{Event: events.Event{Owner: owner}}, charge: charge{places: placesOf(bytes)}}
	}
	now := time.Now()
	for range 3 {
		require.False(t, r.full("acme", window))
		r.push(retryItem{now, entryOf("acme", 5*PlaceBytes)})
	}
	require.False(t, r.full("acme", window))
	last := entryOf("acme", 1)
	r.push(retryItem{now, last})
	require.True(t, r.full("acme", window), "16 of 64 places")
	require.False(t, r.full("beta", window))
	r.drop(last)
	require.False(t, r.full("acme", window))
	for _, owner := range []string{"beta", "gamma"} {
		r.push(retryItem{now, entryOf(owner, 8*PlaceBytes+1)})
	}
	require.True(t, r.full("delta", window), "33 of 64 places")
	due, _ := r.pop(now)
	require.Len(t, due, 5)
	require.Zero(t, r.all)
	require.Empty(t, r.of)
}
