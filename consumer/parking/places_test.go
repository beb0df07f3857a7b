package parking

import (
	"fmt"
	"slices"
	"testing"
	"time"

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

// Workers of an owner that were paused take turns, and share the owner's room.
func TestResumedWorkersTakeTurns(t *testing.T) {
	p := newPlaces()
	names := []string{"acme", "beta"}
	counts := map[string]uint64{"acme": 1, "beta": 1}
	for i := range 9 {
		names = append(names, nameOf("acme", fmt.Sprint("w", i), true))
		counts[names[len(names)-1]] = 1
	}
	slices.Sort(names)
	had := map[string]int{}
	now := time.Now()
	for range 9 {
		list := p.takeTurns(slices.Clone(names), now)
		require.Len(t, list, 4, "two owners, and two of the workers")
		p.found(list, counts, now)
		for next := p.next(); len(next) > 0; next = p.next() {
			for _, name := range next {
				p.add(name)
			}
		}
		require.Len(t, p.owners, 4)
		for range 3 {
			p.set("acme", 7)
			all := 0
			for name, o := range p.owners {
				if name != "beta" {
					all += o.room
				}
			}
			require.Equal(t, 7, all)
		}
		require.Equal(t, list, p.takeTurns(slices.Clone(names), now), "they keep their places for a turn")
		for _, name := range list {
			had[name]++
			if _, _, held := SplitName(name); held {
				require.True(t, p.passOn(name))
			}
		}
	}
	require.Equal(t, 9, had["acme"])
	for _, name := range names {
		if _, _, held := SplitName(name); held {
			require.Equal(t, 2, had[name], name)
		}
	}
	p.takeTurns([]string{"acme"}, now)
	require.Empty(t, p.turns)
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
