package consumer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// counter is a dispatcher that counts parked events as dispatch does.
type counter struct {
	parks  uint64
	asked  int
	during func()
}

func (*counter) Submit([]*events.Event) {}

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

// Who has nothing parked any more is forgotten on both sides, and word from before that counts for nothing.
func TestThroughForgetsOwners(t *testing.T) {
	d := &counter{}
	c := &Consumer{parking: newParking(), dispatcher: d}
	e := &events.Event{Owner: "o"}
	park := func(seq uint64) {
		d.parks++
		c.parking.opened(e)
		c.parking.closed(e, seq)
	}
	park(7)
	was := c.parking.settledParks()["o"]
	c.emptied("o", 6)
	require.Zero(t, d.asked, "one is behind it")
	c.emptied("o", 7)
	require.Empty(t, c.parking.own)
	require.Zero(t, d.parks)

	park(8)
	c.through("o", was)
	require.Equal(t, 1, d.asked, "it is about the one that was parked before")
	c.parking.opened(e)
	d.parks++
	c.emptied("o", 8)
	require.Equal(t, 1, d.asked, "one is being parked")
	c.parking.closed(e, 9)
	d.parks++ // another, of which nobody here knows yet
	c.emptied("o", 9)
	require.EqualValues(t, 2, c.parking.own["o"].done, "not all")
	require.Empty(t, c.parking.settledParks(), "that is known")
	c.parking.opened(e)
	c.parking.closed(e, 10)
	d.during = func() { c.parking.opened(e) }
	c.emptied("o", 10)
	require.EqualValues(t, 1, c.parking.own["o"].open, "parked since")
	require.Zero(t, c.parking.own["o"].done)
	d.during = nil
	d.parks++
	c.parking.closed(e, 11)
	c.emptied("o", 11)
	require.Empty(t, c.parking.own)
	require.Zero(t, d.parks)
}
