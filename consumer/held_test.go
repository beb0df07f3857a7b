package consumer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
)

// A server that was killed may deliver again what it has confirmed: the events that ended last are known.
func TestConfirmedEventsAreKnownForAWhile(t *testing.T) {
	from, stored := &source{stream: StreamEvents}, time.Now()
	table := table{left: func(int) {}}
	hold := func(seq uint64) *held {
		return &held{from: from, stored: stored, event: &events.Event{Origin: events.Origin{Stream: StreamEvents, Seq: seq}}}
	}
	known := func(seq uint64, stored time.Time) bool {
		_, acked := table.adopt(events.Origin{Stream: StreamEvents, Seq: seq}, stored, 0, stored)
		return acked
	}
	for seq := range uint64(len(table.recent)) {
		h := hold(seq + 1)
		table.add([]*held{h})
		require.False(t, known(seq+1, stored), "it is held")
		table.confirmed([]*held{h})
		require.True(t, known(seq+1, stored))
	}
	require.Zero(t, table.len())
	require.True(t, known(1, stored))
	require.False(t, known(1, stored.Add(1)), "an event of another stream of this name")
	h := hold(5000)
	table.add([]*held{h})
	table.confirmed([]*held{h})
	require.False(t, known(1, stored), "the oldest makes room")
	require.True(t, known(2, stored))
}
