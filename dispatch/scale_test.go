package dispatch

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// An owner takes five cache lines from the allocator, which puts it at the beginning of one. A larger one takes up to
// seven, and an event of one of many owners 10 % more time. An attempt, which each event needs, has a size of the
// allocator, too.
func TestSizes(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, reflect.TypeFor[owner]().Size(), uintptr(320))
	require.LessOrEqual(t, reflect.TypeFor[run]().Size(), uintptr(224))
}

// With any number of owners that have one event each, each event costs the same: about one visit of the ring of owners,
// and no memory that stays. The test counts visits, by how often owners are checked, rather than time.
func TestManyOwnersAreLinear(t *testing.T) {
	visits := func(owners int) float64 {
		d, l := newDispatcher(t, Config{Threads: 1})
		for i := range owners {
			d.Install(workers.Only(worker(fmt.Sprint("owner", i), "w")))
		}
		var batch []*lifecycle.Delivery
		for i := range owners {
			batch = append(batch, task(fmt.Sprint("owner", i), "w", i))
		}
		round := func() {
			for at := 0; at < owners; at += 64 { // as they come from the stream
				d.Submit(batch[at:min(owners, at+64)])
			}
			for d.Figures().Stats().Queued > 0 {
				report(d, 0, 20*time.Microsecond, d.Next(0, 64))
			}
			require.Len(t, l.take(), owners)
			l.takeWoken()
		}
		round() // costs are learnt
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		own(d).queues[light].looks = 0
		for range 3 {
			round()
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		require.Less(t, grown, int64(owners*256+1<<20), "memory is flat")
		return float64(own(d).queues[light].looks) / float64(3*owners)
	}
	one, many := visits(10), visits(10_000)
	t.Logf("looks at owners per event: %.2f with 10 owners, %.2f with 10 000", one, many)
	require.LessOrEqual(t, many, 2*lookahead+2.0)
	require.LessOrEqual(t, many, 4*one+4)
}
