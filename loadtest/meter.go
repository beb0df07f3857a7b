package main

import (
	"context"
	"os"
	"time"

	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

// Groups of processes.
const (
	groupFleet = "fleet" // the fleet or a peer
	groupNATS  = "nats"
	groupLoad  = "load" // this program
)

// meter reads the resource use of groups of processes. It ignores processes that they start later.
type meter struct{ groups map[string][]int }

func newMeter(fleet *child, servers []*child) *meter {
	m := &meter{map[string][]int{groupLoad: {os.Getpid()}}}
	if fleet != nil {
		m.groups[groupFleet] = family(fleet.pid())
	}
	for _, s := range servers {
		m.groups[groupNATS] = append(m.groups[groupNATS], s.pid())
	}
	return m
}

// reading is the CPU time used until a moment.
type reading struct {
	at   time.Time
	used map[string]time.Duration
	busy time.Duration // busy time of the machine
}

func (m *meter) read() reading {
	r := reading{at: time.Now(), used: make(map[string]time.Duration, len(m.groups)), busy: machineBusy()}
	for name, pids := range m.groups {
		r.used[name] = usedCPU(pids)
	}
	return r
}

// foreign returns how many cores other processes used from a to b.
func foreign(a, b reading) float64 {
	others := b.busy - a.busy
	for name := range b.used {
		others -= b.used[name] - a.used[name]
	}
	return max(0, others.Seconds()/b.at.Sub(a.at).Seconds())
}

// report adds the cost of n events from a to b to metrics.
func (m *meter) report(metrics map[string]float64, a, b reading, n int) {
	for name := range m.groups {
		metrics[name+" µs/event"] = float64((b.used[name] - a.used[name]).Microseconds()) / float64(n)
		metrics[name+" cores"] = (b.used[name] - a.used[name]).Seconds() / b.at.Sub(a.at).Seconds()
	}
	metrics["foreign cores"] = foreign(a, b)
	for _, name := range []string{groupFleet, groupNATS} {
		if pids := m.groups[name]; pids != nil {
			now, peak := memory(pids)
			metrics[name+" MB"], metrics[name+" peak MB"] = float64(now)/1e6, float64(peak)/1e6
		}
	}
}

// quietLook is how long a check of the machine's load takes. CPU times have steps of 10 ms.
const quietLook = 500 * time.Millisecond

// awaitQuiet waits until other processes use less than foreignLimit, for at most patience. It also waits for the end of
// the load that the start of a fleet causes.
func (m *meter) awaitQuiet(ctx context.Context, patience time.Duration) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		before := m.read()
		select {
		case <-ctx.Done():
			return
		case <-time.After(quietLook):
		}
		if foreign(before, m.read()) < report.ForeignLimit {
			return
		}
	}
}
