package dispatch

import (
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// effects are collected under the lock and carried out after it.
type effects struct {
	settle []lifecycle.Settlement
	wake   wakes
	close  []closing
	room   []room
	leases []leaseCall
	cancel []*lifecycle.Delivery // events whose runs end
}

// wakes are the threads to wake. Nearly always they are of one pool.
type wakes struct {
	first poolThreads
	more  []poolThreads
}

// poolThreads are threads of one pool.
type poolThreads struct {
	pool int
	set  threadSet
}

// add adds threads that it does not have yet.
func (w *wakes) add(pool int, set threadSet) {
	switch {
	case set == 0:
	case w.first.set == 0 || w.first.pool == pool:
		w.first = poolThreads{pool, w.first.set | set}
	default:
		w.more = append(w.more, poolThreads{pool, set})
	}
}

// each calls f with each thread's number of ThreadOf.
func (w *wakes) each(f func(thread int)) {
	w.first.each(f)
	for _, of := range w.more {
		of.each(f)
	}
}

func (of poolThreads) each(f func(thread int)) {
	of.set.each(func(index int) { f(ThreadOf(of.pool, index)) })
}

type room struct {
	owner string
	n     int
}

// Leases decides which process of the fleet runs events of a worker whose limit is exact. Its methods are called
// without the dispatcher's lock, and must not block on the network.
type Leases interface {
	// Want reports that events of a worker wait for its lease. Grant answers it.
	Want(owner, worker string)
	// Idle reports that for the moment the worker has no event in this process, which has its lease. term is what Grant
	// said.
	Idle(owner, worker string, term uint64)
	// GivenBack reports that no event runs under a lease that Withdraw took, or that is not needed any more.
	GivenBack(owner, worker string, term uint64)
}

func returned(e *lifecycle.Delivery) lifecycle.Settlement {
	return lifecycle.Settlement{Event: e, Order: lifecycle.Return}
}

// leaseCall is a call of Leases.
type leaseCall struct {
	owner, worker string
	term          uint64
	what          leaseCalls
}

type leaseCalls uint8

const (
	wants leaseCalls = iota
	idles
	givesBack
)

func (fx *effects) lease(r *route, what leaseCalls) {
	fx.leases = append(fx.leases, leaseCall{r.owner.name, r.name, r.term, what})
}

func (c leaseCall) call(l Leases) {
	switch c.what {
	case wants:
		l.Want(c.owner, c.worker)
	case idles:
		l.Idle(c.owner, c.worker, c.term)
	case givesBack:
		l.GivenBack(c.owner, c.worker, c.term)
	}
}

// observed calls the observers. The lock must not be held. Without observers each method costs one load.
type observed struct{ *lifecycle.Observers }

func (o observed) queued(batch []*lifecycle.Delivery) {
	for _, one := range o.All() {
		for _, e := range batch {
			if e.Direct() {
				one.Delivered(e)
			}
			one.Queued(e)
		}
	}
}

func (o observed) started(batch []*lifecycle.Attempt) {
	for _, one := range o.All() {
		for _, a := range batch {
			one.Started(a)
		}
	}
}

// reported is called before the reports are judged: afterwards an event may already run again.
func (o observed) reported(reports []lifecycle.Report) {
	for _, one := range o.All() {
		for i := range reports {
			r := &reports[i]
			if r.Reply != nil {
				one.Replied(r)
			}
			if r.End != nil {
				one.Ended(r)
			}
		}
	}
}

func (o observed) settled(batch []lifecycle.Settlement) {
	for _, one := range o.All() {
		for i := range batch {
			one.Settled(&batch[i])
		}
	}
}

// closing is a context to close.
type closing struct {
	thread int
	worker *workers.Worker
}

// answerDirect gives settlements of direct events to their callers. It returns the others.
func answerDirect(batch []lifecycle.Settlement) (others []lifecycle.Settlement) {
	n := 0
	for i := range batch {
		s := &batch[i]
		if !s.Event.Direct() {
			if n < i {
				batch[n] = *s
			}
			n++
			continue
		}
		if s.Reply != nil {
			s.Event.Caller.Reply(s.Reply)
		}
		if !s.ReplyOnly() {
			s.Event.Caller.End()
		}
	}
	clear(batch[n:])
	return batch[:n]
}
