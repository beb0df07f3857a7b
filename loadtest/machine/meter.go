package machine

import (
	"context"
	"os"
	"time"

	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

// Groups of processes.
const (
	GroupFleet = "fleet" // the fleet or a peer
	GroupNATS  = "nats"
	GroupLoad  = "load" // this program
)

// Meter reads the resource use of groups of processes. Of a fleet it also finds those that it starts later, such as
// cells.
type Meter struct {
	Groups map[string][]int
	fleet  *Child // nil = none
	beside []*Child
}

func NewMeter(fleet *Child, servers []*Child) *Meter {
	m := &Meter{Groups: map[string][]int{GroupLoad: {os.Getpid()}}, fleet: fleet}
	m.look()
	for _, s := range servers {
		m.Groups[GroupNATS] = append(m.Groups[GroupNATS], s.pid())
	}
	return m
}

// AddToFleet counts a child as one of the fleet.
func (m *Meter) AddToFleet(c *Child) { m.beside = append(m.beside, c) }

// Reading is the CPU time used until a moment.
type Reading struct {
	At   time.Time
	Used map[string]time.Duration
	busy time.Duration // busy time of the machine
}

// look finds the processes of the fleet.
func (m *Meter) look() {
	if m.fleet != nil {
		m.Groups[GroupFleet] = family(m.fleet.pid())
		for _, c := range m.beside {
			m.Groups[GroupFleet] = append(m.Groups[GroupFleet], c.pid())
		}
	}
}

func (m *Meter) Read() Reading {
	m.look()
	r := Reading{At: time.Now(), Used: make(map[string]time.Duration, len(m.Groups)), busy: Busy()}
	for name, pids := range m.Groups {
		r.Used[name] = UsedCPU(pids)
	}
	return r
}

// Foreign returns how many cores other processes used from a to b.
func Foreign(a, b Reading) float64 {
	others := b.busy - a.busy
	for name := range b.Used {
		others -= b.Used[name] - a.Used[name]
	}
	return max(0, others.Seconds()/b.At.Sub(a.At).Seconds())
}

// Report adds the cost of n events from a to b to metrics.
func (m *Meter) Report(metrics map[string]float64, a, b Reading, n int) {
	for name := range m.Groups {
		metrics[name+" µs/event"] = float64((b.Used[name] - a.Used[name]).Microseconds()) / float64(n)
		metrics[name+" cores"] = (b.Used[name] - a.Used[name]).Seconds() / b.At.Sub(a.At).Seconds()
	}
	metrics["foreign cores"] = Foreign(a, b)
	for _, name := range []string{GroupFleet, GroupNATS} {
		if pids := m.Groups[name]; pids != nil {
			now, peak := Memory(pids)
			metrics[name+" MB"], metrics[name+" peak MB"] = float64(now)/1e6, float64(peak)/1e6
		}
	}
}

// quietLook is how long a check of the machine's load takes. CPU times have steps of 10 ms.
const quietLook = 500 * time.Millisecond

// AwaitQuiet waits until other processes use less than foreignLimit, for at most patience. It also waits for the end of
// the load that the start of a fleet causes.
func (m *Meter) AwaitQuiet(ctx context.Context, patience time.Duration) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		before := m.Read()
		select {
		case <-ctx.Done():
			return
		case <-time.After(quietLook):
		}
		if Foreign(before, m.Read()) < report.ForeignLimit {
			return
		}
	}
}
