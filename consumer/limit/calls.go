package limit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// Calls limits the calls that an owner makes, and the tasks that its workers send. It has an entry only for owners
// whose policy limits them. Its zero value is ready.
type Calls struct {
	mu        sync.Mutex
	processes int // of the fleet; 0 counts as 1
	owners    map[string]*share
}

// share is this process's part of one owner's limits.
type share struct {
	policy       workers.Policy
	calls, sends meter
}

// meter limits calls or sends. A nil limiter means no limit.
type meter struct {
	count, bytes *rate.Limiter
}

// SetPolicy sets how much an owner may call and send from now on.
func (c *Calls) SetPolicy(owner string, p workers.Policy, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.Calls == 0 && p.CallBytes == 0 && p.Sends == 0 && p.SendBytes == 0 {
		delete(c.owners, owner)
		return
	}
	if c.owners == nil {
		c.owners = make(map[string]*share)
	}
	g := c.owners[owner]
	if g == nil {
		g = &share{}
		c.owners[owner] = g
	}
	g.policy = p
	g.set(max(1, c.processes), now)
}

// SetProcesses sets how many processes the fleet has. Calls are spread evenly over them.
func (c *Calls) SetProcesses(n int, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = max(1, n)
	for _, g := range c.owners {
		g.set(c.processes, now)
	}
}

// set sets the share's limits to one process's part of the policy. What was used stays used.
func (g *share) set(processes int, now time.Time) {
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

// sendLimits returns how many tasks and bytes the owner may send per second; 0 = no limit.
func (g *share) sendLimits() (sends, bytes int) {
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

// Admit returns why a call of size bytes must not be stored, or nil.
func (c *Calls) Admit(owner string, size int, now time.Time) *events.Failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.owners[owner]
	if g == nil {
		return nil
	}
	switch g.calls.take(1, size, now) {
	case noneLeft:
		return events.Fail(events.ReasonRate, "owner %s may make %d calls in a second", owner, g.policy.Calls)
	case noBytesLeft:
		return events.Fail(events.ReasonRate, "owner %s may send %d bytes of calls in a second", owner, g.policy.CallBytes)
	}
	return nil
}

// AdmitSend is Admit for count tasks that a worker sends at once, of size bytes together.
func (c *Calls) AdmitSend(owner string, count, size int, now time.Time) *events.Failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.owners[owner]
	if g == nil || guard.SendRates.Off() {
		return nil
	}
	sends, bytes := g.sendLimits()
	switch g.sends.take(count, size, now) {
	case noneLeft:
		return events.Fail(events.ReasonRate, "owner %s may send %d tasks in a second", owner, sends)
	case noBytesLeft:
		return events.Fail(events.ReasonRate, "owner %s may send %d bytes of tasks in a second", owner, bytes)
	}
	return nil
}

// taking is the result of take.
type taking uint8

const (
	taken taking = iota
	noneLeft
	noBytesLeft
)

// take lets one call or send of size bytes pass. If the limit of the number or of the bytes is reached, it refuses, and
// uses nothing of the other limit.
func (m *meter) take(count, size int, now time.Time) taking {
	if m.count != nil {
		if count = min(count, m.count.Burst()); m.count.TokensAt(now) < float64(count) {
			return noneLeft
		}
	}
	// What is larger than the limit of a second takes all of it.
	if m.bytes != nil && !m.bytes.AllowN(now, min(size, m.bytes.Burst())) {
		return noBytesLeft
	}
	if m.count != nil {
		m.count.AllowN(now, count)
	}
	return taken
}
