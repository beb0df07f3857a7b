package main

import (
	"context"
	"os"
	"time"
)

// foreignLimit is how many cores others may use during a run that counts as undisturbed.
const foreignLimit = 0.25

// Groups of processes.
const (
	groupFleet = "fleet" // or the peer
	groupNATS  = "nats"
	groupLoad  = "load" // this program
)

// meter reads what groups of processes use. Processes that they start later are not in it.
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

// reading is the CPU time used up to a moment.
type reading struct {
	at   time.Time
	used map[string]time.Duration
	busy time.Duration // of the machine
}

func (m *meter) read() reading {
	r := reading{at: time.Now(), used: make(map[string]time.Duration, len(m.groups)), busy: machineBusy()}
	for name, pids := range m.groups {
		r.used[name] = usedCPU(pids)
	}
	return r
}

// foreign is how many cores others used from a to b.
func foreign(a, b reading) float64 {
	others := b.busy - a.busy
	for name := range b.used {
		others -= b.used[name] - a.used[name]
	}
	return max(0, others.Seconds()/b.at.Sub(a.at).Seconds())
}

// report adds to metrics what n events cost from a to b.
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

// quietLook is how long it takes to see how busy the machine is. CPU times come in steps of 10 ms.
const quietLook = 500 * time.Millisecond

// awaitQuiet waits until others use less than foreignLimit, or as long as patience. Who started a fleet a moment ago waits
// for it, too.
func (m *meter) awaitQuiet(ctx context.Context, patience time.Duration) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		before := m.read()
		select {
		case <-ctx.Done():
			return
		case <-time.After(quietLook):
		}
		if foreign(before, m.read()) < foreignLimit {
			return
		}
	}
}
