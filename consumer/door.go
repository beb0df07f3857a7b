package consumer

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// door keeps out calls, and tasks that workers send, of which an owner makes more than it may. It has something for those owners only whose
// policy says how many.
type door struct {
	mu        sync.Mutex
	processes int // of the fleet; 0 counts as 1
	gates     map[string]*gate
}

// gate is the share of one owner's limits that this process lets in.
type gate struct {
	policy       events.Policy
	calls, sends meter
}

// meter is what has passed of one kind. A limiter that is nil has no limit.
type meter struct {
	count, bytes *rate.Limiter
}

// SetPolicy says what an owner may call and send from now on. It may be called from any goroutine.
func (c *Consumer) SetPolicy(owner string, p events.Policy) { c.door.setPolicy(owner, p, time.Now()) }

// SetProcesses says how many processes the fleet has; calls come to each of them alike. It may be called from any goroutine.
func (c *Consumer) SetProcesses(n int) {
	c.processes.Store(int64(n))
	c.door.setProcesses(n, time.Now())
}

// AdmitSend says why a task of so many bytes that a worker of owner sends is not to be stored, or nil. It may be called from any goroutine.
func (c *Consumer) AdmitSend(owner string, size int) *events.Failure {
	if failed := c.usage.events.failure(c.nc); failed != nil {
		return notStored(failed)
	}
	f := c.door.admitSend(owner, size, time.Now())
	if f == nil {
		f = c.admitStored(owner, size)
	}
	if f != nil {
		c.metrics.sendsLimited.Inc()
	}
	return f
}

func (d *door) setPolicy(owner string, p events.Policy, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p.Calls == 0 && p.CallBytes == 0 && p.Sends == 0 && p.SendBytes == 0 {
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
	p := g.policy
	burst := p.CallBurst
	if burst == 0 {
		burst = p.Calls
	}
	g.calls.count = limit(g.calls.count, p.Calls, burst, processes, now)
	g.calls.bytes = limit(g.calls.bytes, p.CallBytes, p.CallBytes, processes, now)
	sends, sendBytes := g.sendLimits()
	if p.Sends != 0 {
		burst = max(p.Sends, p.CallBurst)
	}
	g.sends.count = limit(g.sends.count, sends, burst, processes, now)
	g.sends.bytes = limit(g.sends.bytes, sendBytes, sendBytes, processes, now)
}

// sendLimits are the tasks and bytes that the owner may send in a second; 0 = no limit.
func (g *gate) sendLimits() (sends, bytes int) {
	sends, bytes = g.policy.Sends, g.policy.SendBytes
	if sends == 0 {
		sends = g.policy.Calls
	}
	if bytes == 0 {
		bytes = g.policy.CallBytes
	}
	return sends, bytes
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
	switch g.calls.take(size, now) {
	case noneLeft:
		return events.Fail(events.ReasonRate, "owner %s may make %d calls in a second", owner, g.policy.Calls)
	case noBytesLeft:
		return events.Fail(events.ReasonRate, "owner %s may send %d bytes of calls in a second", owner, g.policy.CallBytes)
	}
	return nil
}

// admitSend is admit for a task that a worker sends.
func (d *door) admitSend(owner string, size int, now time.Time) *events.Failure {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.gates[owner]
	if g == nil {
		return nil
	}
	if guard.SendRates.Off() {
		return nil
	}
	sends, bytes := g.sendLimits()
	switch g.sends.take(size, now) {
	case noneLeft:
		return events.Fail(events.ReasonRate, "owner %s may send %d tasks in a second", owner, sends)
	case noBytesLeft:
		return events.Fail(events.ReasonRate, "owner %s may send %d bytes of tasks in a second", owner, bytes)
	}
	return nil
}

// What take says.
const (
	taken = iota
	noneLeft
	noBytesLeft
)

// take lets one of so many bytes pass. Who has none left of either is refused, and loses nothing of the other.
func (m *meter) take(size int, now time.Time) int {
	if m.count != nil && m.count.TokensAt(now) < 1 {
		return noneLeft
	}
	if m.bytes != nil && !m.bytes.AllowN(now, min(size, m.bytes.Burst())) { // one larger than a second may have takes all of it
		return noBytesLeft
	}
	if m.count != nil {
		m.count.AllowN(now, 1)
	}
	return taken
}
