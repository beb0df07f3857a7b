package consumer

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/events"
)

// door keeps calls out of which an owner makes more than it may. It has something for those owners only whose policy says how many.
type door struct {
	mu        sync.Mutex
	processes int // of the fleet; 0 counts as 1
	gates     map[string]*gate
}

// gate is the share of one owner's limits that this process lets in.
type gate struct {
	policy events.Policy
	calls  *rate.Limiter // nil: no limit
	bytes  *rate.Limiter // nil: no limit
}

// SetPolicy says what an owner may call from now on. It may be called from any goroutine.
func (c *Consumer) SetPolicy(owner string, p events.Policy) { c.door.setPolicy(owner, p, time.Now()) }

// SetProcesses says how many processes the fleet has; calls come to each of them alike. It may be called from any goroutine.
func (c *Consumer) SetProcesses(n int) { c.door.setProcesses(n, time.Now()) }

func (d *door) setPolicy(owner string, p events.Policy, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.Calls == 0 && p.CallBytes == 0 {
		delete(d.gates, owner)
		return
	}
	if d.gates == nil {
		d.gates = make(map[string]*gate)
	}
	g := d.gates[owner]
	if g == nil {
		g = &gate{}
		d.gates[owner] = g
	}
	g.policy = p
	g.set(max(1, d.processes), now)
}

func (d *door) setProcesses(n int, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.processes = max(1, n)
	for _, g := range d.gates {
		g.set(d.processes, now)
	}
}

// set makes the gate's limits what the policy gives one of so many processes. What was used of them stays used.
func (g *gate) set(processes int, now time.Time) {
	burst := g.policy.CallBurst
	if burst == 0 {
		burst = g.policy.Calls
	}
	g.calls = limit(g.calls, g.policy.Calls, burst, processes, now)
	g.bytes = limit(g.bytes, g.policy.CallBytes, g.policy.CallBytes, processes, now)
}

func limit(l *rate.Limiter, perSecond, burst, processes int, now time.Time) *rate.Limiter {
	if perSecond == 0 {
		return nil
	}
	each, at := rate.Limit(float64(perSecond)/float64(processes)), max(1, burst/processes)
	if l == nil {
		return rate.NewLimiter(each, at)
	}
	l.SetLimitAt(now, each)
	l.SetBurstAt(now, at)
	return l
}

// admit says why a call of so many bytes is not stored, or nil.
func (d *door) admit(owner string, size int, now time.Time) *events.Failure {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.gates[owner]
	if g == nil {
		return nil
	}
	// Who has none left of either is refused at once, and loses nothing of the other.
	if g.calls != nil && g.calls.TokensAt(now) < 1 {
		return events.Fail(events.ReasonRate, "owner %s may make %d calls in a second", owner, g.policy.Calls)
	}
	if g.bytes != nil {
		if !g.bytes.AllowN(now, min(size, g.bytes.Burst())) { // one larger than a second may have takes all of it
			return events.Fail(events.ReasonRate, "owner %s may send %d bytes of calls in a second", owner, g.policy.CallBytes)
		}
	}
	if g.calls != nil {
		g.calls.AllowN(now, 1)
	}
	return nil
}
