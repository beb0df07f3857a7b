package limit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// Calls limits the calls that an owner makes, and the tasks that its workers send, to what its policy in the catalog
// says. It has an entry only for owners whose policy limited them at their last call. Make it with NewCalls.
type Calls struct {
	catalog *catalog.Catalog

	mu        sync.Mutex
	processes int // of the fleet
	owners    map[string]*share
}

// share is this process's part of one owner's limits.
type share struct {
	policy       *workers.Policy // by which the meters are set, with so many processes
	processes    int
	calls, sends meter
}

// meter limits calls or sends. A nil limiter means no limit.
type meter struct {
	count, bytes *rate.Limiter
}

// NewCalls makes Calls for a fleet of one process.
func NewCalls(c *catalog.Catalog) *Calls {
	return &Calls{catalog: c, processes: 1, owners: make(map[string]*share)}
}

// SetProcesses sets how many processes the fleet has. Calls are spread evenly over them.
func (c *Calls) SetProcesses(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = max(1, n)
}

// share returns the share of an owner by its policy of now; nil = it has no limits. mu must be held.
func (c *Calls) share(owner string, now time.Time) *share {
	p := c.catalog.Policy(owner)
	if p.Calls == 0 && p.CallBytes == 0 && p.Sends == 0 && p.SendBytes == 0 {
		delete(c.owners, owner)
		return nil
	}
	g := c.owners[owner]
	if g == nil {
		g = &share{}
		c.owners[owner] = g
	}
	if g.policy != p || g.processes != c.processes {
		g.set(p, c.processes, now)
	}
	return g
}

// set sets the share's limits to one process's part of the policy. What was used stays used.
func (g *share) set(p *workers.Policy, processes int, now time.Time) {
	g.policy, g.processes = p, processes
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
	g := c.share(owner, now)
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
	g := c.share(owner, now)
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
