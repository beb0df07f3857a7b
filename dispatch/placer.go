package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// placer decides on which threads events run: which owner a thread serves, and which threads are woken. It knows which
// threads sleep (idle.go), which hold a context of a version (version.warm, extra.go), which one keeps it
// (version.home), and which run the owners of each class (shares.go). It starts nothing and wakes nothing itself. d.mu
// must be held for all methods.
type placer struct {
	b      *backlog
	idle   idleThreads
	extras extras
	of     [classes]threadSet // which threads run the owners of each class
	mean   time.Duration      // expected CPU time of an event, over all workers
}

func newPlacer(cfg Config, b *backlog) placer {
	return placer{
		b:    b,
		idle: newIdleThreads(cfg),
		of:   cfg.threadsOf(),
		mean: unknownCost,
	}
}

// threadsOf returns the threads that run the owners of each class. Heavy owners may also use pinned threads, but there
// are always as many pinned threads that they may not use as there are background threads.
func (c Config) threadsOf() (of [classes]threadSet) {
	all := threadSet(1)<<c.Threads - 1
	of[light] = all
	if c.Background > 0 {
		kept := threadSet(1)<<min(c.Background, c.Threads) - 1
		of[heavy] = all&^kept | (1<<c.Background-1)<<c.Threads
	}
	return of
}

// wake chooses the threads to wake for startable events, of which so many are in queues. The others are watched events
// and service calls, which any thread of their class starts.
func (p *placer) wake(startable, queued [classes]int, now time.Time) (woken threadSet) {
	look := p.idle.look
	for c, n := range startable {
		if n == 0 || p.idle.asleep&p.of[c] == 0 {
			continue
		}
		woken |= p.idle.wake(p.of[c], queued[c], n-queued[c], p.mean, &p.b.queues[c], now)
	}
	if p.idle.look != look {
		p.b.lookAgain()
	}
	return woken
}

// pick returns the owner whose events the thread starts. An owner that is warm on a thread that sleeps is left to that
// one: wake wakes it.
func (p *placer) pick(thread int, now time.Time) *owner {
	set := threadSet(1) << thread
	for c := range p.b.queues {
		if p.of[c]&set == 0 {
			continue
		}
		soon := p.idle.soon(p.of[c], now) | p.idle.asleep&p.of[c]
		if o := p.b.queues[c].pick(set, soon); o != nil {
			o.takenBy(set, soon, now)
			return o
		}
	}
	return nil
}

// othersWait reports whether events of other owners wait for the thread, because no thread that could run them sleeps
// or was just woken.
func (p *placer) othersWait(o *owner, thread int, startable [classes]int, now time.Time) bool {
	if thread < 0 {
		return false
	}
	for c := range p.of {
		of, n := p.of[c], startable[c]
		if o != nil && o.class == class(c) {
			n -= o.counted
		}
		late := now.Sub(p.idle.wokenAt) > lateAfter
		if of&(1<<thread) != 0 && n > 0 && p.idle.asleep&of == 0 && (p.idle.waking&of == 0 || late) {
			return true
		}
	}
	return false
}

// started notes that a thread has a run: it holds a context of the version from now on.
func (p *placer) started(r *run, now time.Time) {
	r.version.begins(1 << r.thread)
	if p.extras.note(r.version, now) {
		p.b.lookAgain()
	}
	p.idle.attempts[r.thread]++
}

// ended notes that a run has left its thread, and what it took.
func (p *placer) ended(r *run, end *lifecycle.End) {
	p.idle.attempts[r.thread]--
	if end.Started {
		p.mean += (max(end.CPU, leastCost) - p.mean) / 64
	}
	r.version.ended(1<<r.thread, end)
}
