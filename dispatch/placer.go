package dispatch

import (
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// placer decides on which threads of a pool events run: which owner a thread serves, and which threads are woken. It
// knows which threads sleep (idle.go), which hold a context of a version (version.warm, spares), which one keeps it
// (version.home), and which run the owners of each class (shares.go). It starts nothing and wakes nothing itself. d.mu
// must be held for all methods.
type placer struct {
	b      *backlog
	spares spares
	of     [classes]threadSet // which threads of each pool run its owners of each class
	left   []*pool            // those with events that are left to threads that work (idleThreads.look)
}

func newPlacer(cfg Config, b *backlog) placer { return placer{b: b, of: cfg.threadsOf()} }

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

// wake chooses the threads of a pool to wake for its startable events, of which so many are in queues. The others are
// watched events and service calls, which any thread of their class starts.
func (p *placer) wake(in *pool, startable, queued [classes]int, now time.Time) (woken threadSet) {
	look := in.idle.look
	for c, n := range startable {
		if n == 0 || in.idle.asleep&p.of[c] == 0 {
			continue
		}
		woken |= in.idle.wake(p.of[c], queued[c], n-queued[c], in.mean, &in.queues[c], now)
	}
	if in.idle.look != look {
		p.left = append(p.left, in)
		p.b.lookAgain()
	}
	return woken
}

// pick returns the owner whose events the thread of a pool starts. An owner that is warm on a thread that sleeps is
// left to that one: wake wakes it.
func (p *placer) pick(in *pool, thread int, now time.Time) *owner {
	set := threadSet(1) << thread
	for c := range in.queues {
		if p.of[c]&set == 0 {
			continue
		}
		soon := in.idle.soon(p.of[c], now) | in.idle.asleep&p.of[c]
		if o := in.queues[c].pick(set, soon); o != nil {
			o.takenBy(set, soon, now)
			return o
		}
	}
	return nil
}

// othersWait reports whether events of other owners wait for the thread of a pool, because no thread that could run
// them sleeps or was just woken.
func (p *placer) othersWait(o *owner, in *pool, thread int, startable [classes]int, now time.Time) bool {
	for c := range p.of {
		of, n := p.of[c], startable[c]
		if o != nil && o.class == class(c) && o.pool == in {
			n -= o.counted
		}
		late := now.Sub(in.idle.wokenAt) > lateAfter
		if of&(1<<thread) != 0 && n > 0 && in.idle.asleep&of == 0 && (in.idle.waking&of == 0 || late) {
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
	r.pool.running++
	r.pool.idle.threads[r.thread].attempts++
}

// ended notes that a run has left its thread, and what it took.
func (p *placer) ended(r *run, end *lifecycle.End) {
	r.pool.running--
	r.pool.idle.threads[r.thread].attempts--
	if end.Started {
		r.pool.mean += (max(end.CPU, leastCost) - r.pool.mean) / 64
	}
	r.version.ended(r.warms(), end)
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
// They are of the pools of their owners.
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
		extra := poolThreads{owners[v.worker.Owner].pool.number, v.warm &^ v.homeThread()}
		extra.each(func(thread int) { unneeded = append(unneeded, closing{thread, v.worker}) })
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
	p.left = slices.DeleteFunc(p.left, func(in *pool) bool {
		if now.Before(in.idle.look) {
			return false
		}
		in.idle.look = time.Time{}
		p.b.pools.touch(in)
		return true
	})
	fx.close = p.spares.look(p.b.owners, now)
}

// leftUntil is when tick lets threads be woken next; zero = no events are left to others.
func (p *placer) leftUntil() (first time.Time) {
	for _, in := range p.left {
		if first.IsZero() || in.idle.look.Before(first) {
			first = in.idle.look
		}
	}
	return first
}

// setCalling notes that r waits for service calls, or that this is over. Meanwhile others may have its place and its
// slot. It gets them back whether they are free or not.
func (p *placer) setCalling(r *run, is bool) {
	r.owner.places.setCalling(is)
	if is {
		r.pool.idle.threads[r.thread].attempts--
	} else {
		r.pool.idle.threads[r.thread].attempts++
	}
}
