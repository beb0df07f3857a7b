package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// sink is a Settler and Threads that cost nothing.
type sink struct{ settled int }

func (s *sink) Settle(batch []lifecycle.Settlement) { s.settled += len(batch) }
func (s *sink) Room(string, int)                    {}
func (s *sink) Wake(int)                            {}
func (s *sink) CloseContexts(int, *workers.Worker)  {}
func (s *sink) Cancel(*lifecycle.Delivery)          {}

// BenchmarkEvent is the whole way of an event through dispatch, in batches of 64 as they come from the stream
// with warm workers of 20 µs each.
func BenchmarkEvent(b *testing.B) {
	for _, owners := range []int{1, 100, 10_000} {
		b.Run(fmt.Sprintf("owners=%d", owners), func(b *testing.B) { benchmark(b, owners, 64) })
	}
	b.Run("one at a time", func(b *testing.B) { benchmark(b, 100, 1) })
}

func benchmark(b *testing.B, owners, batch int) {
	d, _ := newDispatcher(b, Config{Threads: 2})
	s := &sink{}
	d.Wire(s, s)
	for i := range owners {
		d.Install(workers.Only(worker(fmt.Sprint("owner", i), "w")))
		learn(b, d, 0, fmt.Sprint("owner", i), "w", 20*time.Microsecond)
	}
	all := make([]*lifecycle.Delivery, max(owners, 4096))
	for i := range all {
		all[i] = task(fmt.Sprint("owner", i*7919%owners), "w", i)
	}
	reply, end := &events.Reply{}, &lifecycle.End{Started: true, CPU: 20 * time.Microsecond}
	reports := make([]lifecycle.Report, 0, 64)
	s.settled, own(d).queues[light].looks = 0, 0
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		at := n % (len(all) - batch)
		d.Submit(all[at : at+batch])
		n += batch
		for s.settled < n {
			reports = reports[:0]
			for _, a := range d.Next(0, 64) {
				reports = append(reports, lifecycle.Report{Attempt: a, Reply: reply, End: end})
			}
			d.Report(0, reports)
		}
	}
	require.Equal(b, n, s.settled)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/event")
	b.ReportMetric(float64(n)/float64(b.N), "events/op")
	b.ReportMetric(float64(own(d).queues[light].looks)/float64(n), "looks/event")
}
