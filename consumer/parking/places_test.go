package parking

import (
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// counter is a dispatcher that counts parked events as dispatch does.
type counter struct {
	parks  uint64
	asked  int
	during func()
}

func (d *counter) Through(_ string, parks uint64) bool {
	d.asked++
	if d.during != nil {
		d.during()
	}
	if d.parks != parks {
		return false
	}
	d.parks = 0
	return true
}

// An owner that has nothing parked any more is forgotten on both sides, and earlier reports have no effect.
func TestThroughForgetsOwners(t *testing.T) {
	d := &counter{}
	l := New(Config{Through: d.Through}, nil, zerolog.Nop())
	e := &lifecycle.Delivery{Event: events.Event{Owner: "o"}}
	park := func(seq uint64) {
		d.parks++
		l.places.opened(e)
		l.places.closed(e, seq)
	}
	park(7)
	was := l.places.unconfirmedParks()["o"]
	l.Emptied("o", 6)
	require.Zero(t, d.asked, "one is behind it")
	l.Emptied("o", 7)
	require.Empty(t, l.places.own)
	require.Zero(t, d.parks)

	park(8)
	l.through("o", was)
	require.Equal(t, 1, d.asked, "it is about the one that was parked before")
	l.places.opened(e)
	d.parks++
	l.Emptied("o", 8)
	require.Equal(t, 1, d.asked, "one is being parked")
	l.places.closed(e, 9)
	d.parks++ // another one, which is not known here yet
	l.Emptied("o", 9)
	require.EqualValues(t, 2, l.places.own["o"].done, "not all")
	require.Empty(t, l.places.unconfirmedParks(), "that is known")
	l.places.opened(e)
	l.places.closed(e, 10)
	d.during = func() { l.places.opened(e) }
	l.Emptied("o", 10)
	require.EqualValues(t, 1, l.places.own["o"].open, "parked since")
	require.Zero(t, l.places.own["o"].done)
	d.during = nil
	d.parks++
	l.places.closed(e, 11)
	l.Emptied("o", 11)
	require.Empty(t, l.places.own)
	require.Zero(t, d.parks)
}
