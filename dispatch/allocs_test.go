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

// allocationsPerEvent is what an event may cost on its whole way through dispatch.
const allocationsPerEvent = 1.5

// TestAllocationsPerEvent fails when an event's way through dispatch allocates more often than agreed.
func TestAllocationsPerEvent(t *testing.T) {
	d, _ := newDispatcher(t, Config{Threads: 2})
	s := &sink{}
	d.Wire(s, s)
	const owners, batch = 16, 64
	for i := range owners {
		d.Install(workers.Only(worker(fmt.Sprint("owner", i), "w")))
		learn(t, d, 0, fmt.Sprint("owner", i), "w", 20*time.Microsecond)
	}
	all := make([]*lifecycle.Delivery, batch)
	for i := range all {
		all[i] = task(fmt.Sprint("owner", i%owners), "w", i)
	}
	reply, end := &events.Reply{}, &lifecycle.End{Started: true, CPU: 20 * time.Microsecond}
	reports := make([]lifecycle.Report, 0, batch)
	s.settled = 0
	n := 0
	per := testing.AllocsPerRun(200, func() {
		d.Submit(all)
		n += batch
		for s.settled < n {
			reports = reports[:0]
			for _, a := range d.Next(0, batch) {
				reports = append(reports, lifecycle.Report{Attempt: a, Reply: reply, End: end})
			}
			d.Report(0, reports)
		}
	}) / batch
	t.Logf("%.2f allocations an event", per)
	require.LessOrEqual(t, per, allocationsPerEvent, "agreed")
}
