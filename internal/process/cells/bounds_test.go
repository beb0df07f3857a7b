package cells

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/wire"
)

// witness notes what a Dispatcher is told.
type witness struct {
	Dispatcher

	mu             sync.Mutex
	ran, paid, end []time.Duration
	free           []int
	away           []bool
}

func noted[T any](w *witness, list *[]T, one T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*list = append(*list, one)
}

func (w *witness) Next(thread, free int) []*lifecycle.Attempt {
	noted(w, &w.free, free)
	return w.Dispatcher.Next(thread, free)
}

func (w *witness) Running(thread int, a *lifecycle.Attempt, cpu time.Duration) bool {
	noted(w, &w.ran, cpu)
	return w.Dispatcher.Running(thread, a, cpu)
}

func (w *witness) Charge(owner string, cpu time.Duration) {
	noted(w, &w.paid, cpu)
	w.Dispatcher.Charge(owner, cpu)
}

func (w *witness) Away(a *lifecycle.Attempt, is bool) {
	noted(w, &w.away, is)
	w.Dispatcher.Away(a, is)
}

func (w *witness) Report(thread int, reports []lifecycle.Report) {
	for _, r := range reports {
		if r.End != nil {
			noted(w, &w.end, r.End.CPU)
		}
	}
	w.Dispatcher.Report(thread, reports)
}

// Numbers of a cell are within what the broker knows, and are otherwise as the cell says.
func TestNumbersOfCellsAreBounded(t *testing.T) {
	t.Parallel()
	s := openStage(t)
	w := &witness{Dispatcher: s.pools.dispatch}
	s.pools.dispatch = w
	s.install("acme", "w", echo)
	began := time.Now()
	done := s.give(newEvent(events.Task, "acme", "1"))
	f := s.cell(t)
	f.owner = "acme"
	a := f.begin()
	const year = 365 * 24 * time.Hour
	all(runs(0, same, 5, 1), runs(0, same, year, 1), charge("", 6), charge("", year),
		about(wire.Away, true, true, false, false),
		numbers(wire.Next, 1, 3), numbers(wire.Next, 1, 1<<40))(f, a)
	ends(lifecycle.End{Started: true, CPU: year, RetryDelay: -1})(f, a)
	_, end := s.wait(done)
	require.Equal(t, lifecycle.Ack, end.Outcome.Verdict)
	done = s.give(newEvent(events.Task, "acme", "2"))
	numbers(wire.Next, 0, 64)(f, nil)
	ends(lifecycle.End{Started: true, CPU: 7, RetryDelay: -1})(f, f.await(wire.Attempts).attempts[0])
	s.wait(done)
	most := 3 * time.Since(began) // its threads
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, list := range [][]time.Duration{w.ran, w.paid, w.end} {
		small, large := list[0], list[1]
		if i == 2 {
			small, large = large, small
		}
		require.Len(t, list, 2)
		require.Equal(t, time.Duration(5+i), small)
		require.Less(t, large, most)
		require.Greater(t, large, small)
	}
	require.Equal(t, []bool{true, false}, w.away)
	require.Contains(t, w.free, 3)
	for _, free := range w.free {
		require.LessOrEqual(t, free, s.pools.cfg.Pool.Slots)
	}
}

// A number names one attempt for ever: the one that a cell has, or had.
func TestNumbersOfAttempts(t *testing.T) {
	t.Parallel()
	var h assigned
	first := h.add(&lifecycle.Attempt{}, 0)
	h.remove(first)
	last := &lifecycle.Attempt{}
	second := h.add(last, 1)
	require.Equal(t, uint32(first), uint32(second), "the index is used again")
	x, known := h.find(second)
	require.True(t, known)
	require.Same(t, last, x.attempt)
	x, known = h.find(first)
	require.True(t, known)
	require.Nil(t, x, "it is over")
	for _, id := range []uint64{0, second + 1, second + 1<<indexBits, uint64(uint32(second))} {
		_, known = h.find(id)
		require.False(t, known, "%x", id)
	}
	c := caller{&cell{assigned: h}}
	a, was := c.Attempt(first)
	require.Nil(t, a)
	require.True(t, was)
	a, _ = c.Attempt(second)
	require.Same(t, last, a)
}

// After its end a cell gets no WebSocket, and none of its answers is believed that cannot be read.
func TestCellsThatHaveEndedGetNoSocket(t *testing.T) {
	t.Parallel()
	c := &cell{given: newGiven()}
	number, _ := c.sockets.add(nil)
	require.NotZero(t, number)
	c.sockets.end()
	number, of := c.sockets.add(nil)
	require.Zero(t, number)
	require.Nil(t, of)
	_, err := c.poolStats([]byte("{"))
	require.Error(t, err)
}
