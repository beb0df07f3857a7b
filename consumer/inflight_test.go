package consumer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// A server that was killed may deliver again events whose acks it has confirmed. The process remembers the events that
// ended last.
func TestConfirmedEventsAreKnownForAWhile(t *testing.T) {
	t.Parallel()
	from, stored := &source{stream: events.StreamEvents}, time.Now()
	table := inflight{left: func(int) {}}
	hold := func(seq uint64) *entry {
		return &entry{from: from, stored: stored,
			event: lifecycle.Delivery{Event: events.Event{Origin: events.Origin{Stream: events.StreamEvents,
				Seq: seq}}}}
	}
	known := func(seq uint64, stored time.Time) bool {
		_, acked := table.adopt(events.Origin{Stream: events.StreamEvents, Seq: seq}, stored, 0, stored)
		return acked
	}
	for seq := range uint64(recently) {
		h := hold(seq + 1)
		table.add([]*entry{h})
		table.confirmed([]*entry{h}, 0, stored, stored)
	}
	require.Zero(t, table.len())
	require.True(t, known(1, stored))
	require.True(t, known(recently, stored))
	require.False(t, known(1, stored.Add(1)), "an event of another stream of this name")
	h := hold(recently + 1)
	table.add([]*entry{h})
	require.False(t, known(recently+1, stored), "it is held")
	table.confirmed([]*entry{h}, 0, stored, stored)
	require.False(t, known(1, stored), "the oldest makes room")
	require.True(t, known(2, stored))

	later := stored.Add(time.Minute)
	for seq := range uint64(recently) {
		h := hold(seq + 2*recently)
		table.add([]*entry{h})
		table.confirmed([]*entry{h}, 1, stored, later)
	}
	require.True(t, known(2, stored), "the connection before confirmed it: it is known for a time")
	require.False(t, known(1, stored))
	h = hold(4 * recently)
	table.add([]*entry{h})
	table.confirmed([]*entry{h}, 2, later.Add(1), later.Add(time.Hour))
	require.False(t, known(2, stored), "its time is over")
	require.True(t, known(2*recently, stored))
}

// A connection that breaks again and again costs no memory: what was confirmed on the last ones is known.
func TestWhatManyConnectionsConfirmedIsBounded(t *testing.T) {
	t.Parallel()
	from, stored := &source{stream: events.StreamEvents}, time.Now()
	table := inflight{left: func(int) {}}
	seq := uint64(0)
	for connection := range uint64(knownConnections + 3) {
		var batch []*entry
		for range recently {
			seq++
			batch = append(batch, &entry{from: from, stored: stored,
				event: lifecycle.Delivery{Event: events.Event{Origin: events.Origin{Stream: events.StreamEvents,
					Seq: seq}}}})
		}
		table.add(batch)
		table.confirmed(batch, connection, stored, stored.Add(time.Hour))
	}
	require.Len(t, table.resent, knownConnections*recently)
	known := func(seq uint64) bool {
		_, acked := table.adopt(events.Origin{Stream: events.StreamEvents, Seq: seq}, stored, 0, stored)
		return acked
	}
	require.True(t, known(seq))
	require.True(t, known(seq-(knownConnections+1)*recently+1))
	require.False(t, known(seq-(knownConnections+1)*recently))
}

// A server that was killed confirms acks of deliveries that it has lost, and delivers these events again. What comes
// between an ack and its confirmation needs another ack.
func TestDeliveryBehindItsAckIsAckedToo(t *testing.T) {
	t.Parallel()
	from, stored := &source{stream: events.StreamEvents}, time.Now()
	var left int
	table := inflight{left: func(n int) { left += n }}
	var batch []*entry
	for seq := range uint64(3) {
		h := &entry{from: from, stored: stored,
			event: lifecycle.Delivery{Event: events.Event{Origin: events.Origin{Stream: events.StreamEvents,
				Seq: seq}}}}
		h.ack, h.acked = "ack", "ack"
		batch = append(batch, h)
		table.add(batch[seq:])
		require.True(t, table.move(h, storing))
		require.True(t, table.move(h, acking))
	}
	second := batch[1]
	found, acked := table.adopt(events.Origin{Stream: events.StreamEvents, Seq: 1, AckSubject: "again"}, stored, 1, stored)
	require.True(t, found)
	require.False(t, acked, "its reply may have to be published first")
	require.Equal(t, []*entry{second}, table.confirmed(batch, 0, stored, stored))
	require.Equal(t, []int{2, 1}, []int{left, table.len()})
	require.True(t, second.is(acking))
	second.acked = "again"
	require.Empty(t, table.confirmed([]*entry{second}, 0, stored, stored))
	require.Equal(t, []int{3, 0}, []int{left, table.len()})
}

// Every state except the last two has transitions, and an event that is gone stays gone.
func TestTransitions(t *testing.T) {
	t.Parallel()
	from := &source{stream: events.StreamEvents}
	reached := map[state]bool{checking: true, running: true}
	for s, next := range transitions {
		for _, to := range next {
			reached[to] = true
			table := inflight{left: func(int) {}}
			h := &entry{from: from, event: lifecycle.Delivery{}}
			h.state.Store(uint32(s))
			require.True(t, table.move(h, to, state(s)), "%s to %s", state(s), to)
			require.True(t, h.is(to))
			require.False(t, table.move(h, to, state(s)), "it is %s already", to)
		}
	}
	require.Len(t, reached, int(states), "each can be reached")
	require.Empty(t, transitions[gone])
	require.Empty(t, transitions[orphaned])
}
