package dispatch

import (
	"testing"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"

	"github.com/stretchr/testify/require"
)

// An event of a quiet owner is the next of the first thread that is free, though its context is on the other one and
// both have one of the owner with the backlog, whose long events come one at a time.
func TestQuietEventIsNext(t *testing.T) {
	const long, short = 5 * time.Millisecond, 20 * time.Microsecond
	d, l := newDispatcher(t, Config{Threads: 2, OwnerMaxQueued: 1_000_000})
	d.Install(workers.Only(worker("noisy", "w")))
	d.Install(workers.Only(worker("quiet", "w")))
	d.Submit(tasks("quiet", "w", 1))
	report(d, 1, short, d.Next(1, 64))
	d.Submit(tasks("noisy", "w", 1000))
	for thread := range 2 {
		report(d, thread, long, d.Next(thread, 64))
	}
	first, second := d.Next(0, 64), d.Next(1, 64)
	for i := range 100 {
		require.Len(t, first, 1, "none waits in the thread's hand")
		require.Len(t, second, 1)
		d.Submit(tasks("quiet", "w", 1))
		report(d, 0, long, first)
		next := d.Next(0, 64)
		require.Len(t, next, 1)
		require.Equal(t, "quiet", next[0].Event.Owner, "event %d", i)
		report(d, 0, short, next)
		first = d.Next(0, 64)
		report(d, 1, long, second)
		second = d.Next(1, 64)
		l.take()
	}
}
