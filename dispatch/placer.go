package dispatch

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// placer decides on which threads events run: which owner a thread serves, and which threads are woken. It knows which
// threads sleep (idle.go), which hold a context of a version (version.warm, spares), which one keeps it
// (version.home), and which run the owners of each class (shares.go). It starts nothing and wakes nothing itself. d.mu
// must be held for all methods.
type placer struct {
	b      *backlog
	idle   idleThreads
	spares spares
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
	if p.spares.note(r.version, now) {
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

// spares knows the versions for which several threads hold a context. One is enough for most, and an isolate takes
// more memory than all else that an owner has. So a context that was needed only for a moment is closed again.
type spares struct {
	versions []*version
	due      time.Time // of the next look at them; zero = there are none
}

// note adds a version if threads hold several contexts of it. It returns true if Run must reset its timer.
func (x *spares) note(v *version, now time.Time) bool {
	if v.spare || v.warm.len() < 2 || v.worker.Mode.OrDefault() != workers.Pinned {
		return false
	}
	v.spare = true
	x.versions = append(x.versions, v)
	if !x.due.IsZero() {
		return false
	}
	x.due = now.Add(keepSpare)
	return true
}

// look returns contexts that were not needed for keepSpare, of at most closeAtOnce versions: their threads run no event
// meanwhile. It forgets versions that have one context, or are removed: a thread closes the contexts of these anyway.
func (x *spares) look(owners map[string]*owner, now time.Time) (unneeded []closing) {
	if x.due.IsZero() || now.Before(x.due) {
		return nil
	}
	all, left := x.versions, closeAtOnce
	x.versions, x.due = all[:0], time.Time{}
	for _, v := range all {
		if v.spare = v.warm.len() > 1 && installed(owners, v.worker) == v; !v.spare {
			continue
		}
		x.versions = append(x.versions, v)
		if now.Before(v.keep) {
			continue
		}
		if left--; left < 0 {
			continue
		}
		v.keep = now.Add(keepSpare) // if something runs there now, it is asked again
		(v.warm &^ v.homeThread()).each(func(thread int) { unneeded = append(unneeded, closing{thread, v.worker}) })
	}
	clear(all[len(x.versions):])
	switch {
	case left < 0:
		x.due = now.Add(closeEvery)
	case len(x.versions) > 0:
		x.due = now.Add(keepSpare)
	}
	return unneeded
}

// tick lets threads be woken for events that were left to others in vain, and has contexts closed that are not needed.
func (p *placer) tick(now time.Time, fx *effects) {
	if !now.Before(p.idle.look) {
		p.idle.look = time.Time{}
	}
	fx.close = p.spares.look(p.b.owners, now)
}

// setCalling notes that r waits for service calls, or that this is over. Meanwhile others may have its place and its
// slot. It gets them back whether they are free or not.
func (p *placer) setCalling(r *run, is bool) {
	r.owner.places.setCalling(is)
	if is {
		p.idle.attempts[r.thread]--
	} else {
		p.idle.attempts[r.thread]++
	}
}
