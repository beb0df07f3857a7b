package dispatch

import (
	"math/bits"
	"time"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// idleThreads knows which threads sleep, which were woken and have not called Next yet, and when the others are to call
// it. Whenever the dispatcher's lock is free and an event could start, no thread sleeps, or at least one is waking, or
// the event is left to threads that work (owner.leftTo).
type idleThreads struct {
	all      threadSet
	asleep   threadSet
	waking   threadSet
	sleeping threadSet     // those that have not called Next since they fell asleep, woken or not
	wokenAt  time.Time     // the last time one was woken
	threads  []threadState // nil = none has called Next yet
	next     int           // the thread that another tries first
	look     time.Time     // when Run looks whether events were left in vain to threads that work; zero = none are left
}

// threadState is what is known of one thread.
type threadState struct {
	attempts int       // that it has
	due      time.Time // when it is expected to call Next, while it works
}

// newIdleThreads are threads that sleep.
func newIdleThreads(cfg Config) idleThreads {
	all := threadSet(1)<<(cfg.Threads+cfg.Background) - 1
	return idleThreads{all: all, asleep: all, sleeping: all}
}

// up notes that the thread has called Next.
func (n *idleThreads) up(thread int, rest *rest, now time.Time) {
	if n.threads == nil {
		n.threads = make([]threadState, n.all.len())
	}
	n.asleep &^= 1 << thread
	n.waking &^= 1 << thread
	if n.sleeping&(1<<thread) != 0 {
		n.sleeping &^= 1 << thread
		rest.wake(1, now)
	}
}

// end notes that all threads sleep, because their process has ended. none says that they have no attempts.
func (n *idleThreads) end(none bool, rest *rest, now time.Time) {
	rest.wake(-(n.all &^ n.sleeping).len(), now)
	n.asleep, n.sleeping, n.waking = n.all, n.all, 0
	if none {
		n.threads = nil
	}
}

// rest is how long threads have slept, all of a process and its cells together. No more of them count at once than
// the process itself has: there are no more processors.
type rest struct {
	most  int // threads that count at once
	awake int // threads of all pools that do not sleep
	slept time.Duration
	at    time.Time // until when slept is up to date
}

// wake notes that n threads do not sleep any more, or that -n fell asleep.
func (r *rest) wake(n int, now time.Time) {
	r.slept = r.until(now)
	if now.After(r.at) { // else another goroutine came first
		r.at = now
	}
	r.awake += n
}

// until returns how long all threads have slept, together.
func (r *rest) until(now time.Time) time.Duration {
	asleep := r.most - r.awake
	if asleep <= 0 {
		return r.slept
	}
	return r.slept + max(0, now.Sub(r.at))*time.Duration(asleep)
}

// comes notes that a thread, which may have slept, works now and calls Next soon. Threads that were woken before it do
// not get more time by that.
func (n *idleThreads) comes(thread threadSet, now time.Time) {
	if n.waking == 0 {
		n.wokenAt = now
	}
	n.asleep &^= thread
	n.waking |= thread
}

// sleep notes that the thread sleeps until it is woken.
func (n *idleThreads) sleep(thread int, rest *rest, now time.Time) {
	n.asleep |= 1 << thread
	n.sleeping |= 1 << thread
	rest.wake(-1, now)
}

// soon returns the threads of a set that take events soon: those that were woken, and those that work and are expected
// to call Next. A thread whose slots are all taken does not call it: it counts until it is late by overdue.
func (n *idleThreads) soon(of threadSet, now time.Time) (soon threadSet) {
	if now.Sub(n.wokenAt) < overdue {
		soon = n.waking & of
	}
	(of &^ (n.asleep | n.waking)).each(func(thread int) {
		left := n.threads[thread].due.Sub(now)
		if left <= soonEnough && left > -overdue {
			soon |= 1 << thread
		}
	})
	return soon
}

// took notes what the thread takes by its Next.
func (n *idleThreads) took(thread int, batch []*lifecycle.Attempt, now time.Time) {
	due := now
	for _, a := range batch {
		due = due.Add(a.Slot.(*run).cost)
	}
	n.threads[thread].due = due
}

// busy notes that it is not known when the thread calls Next: no events are left to it.
func (n *idleThreads) busy(thread int, now time.Time) {
	if n.threads != nil {
		n.threads[thread].due = now.Add(time.Hour)
	}
}

// wake chooses the threads to wake. Together with those that are waking, there are then as many as the events that
// could start are worth, at a mean expected cost: those queued in t, and others. Threads on which the next owners are
// warm are preferred, and none is woken for owners that are left to other threads. Only threads in of run these.
func (n *idleThreads) wake(
	of threadSet, queued, others int, mean time.Duration, t *fairQueue, now time.Time,
) (woken threadSet) {

	want := worth(queued+others, mean)
	if n.waking&of == 0 || now.Sub(n.wokenAt) < lateAfter {
		want -= (n.waking & of).len()
	}
	was := n.waking
	for ; others > 0 && want > 0 && n.asleep&of != 0; others-- {
		want -= n.rouse(n.asleep & of)
	}
	if queued > 0 && want > 0 {
		n.wakeForOwners(of, want, t, now)
		if n.waking&of == 0 && n.look.IsZero() {
			n.look = now.Add(overdue)
		}
	}
	if woken = n.waking &^ was; woken != 0 {
		n.wokenAt = now
	}
	return woken
}

// wakeForOwners wakes at most want threads for the next owners.
func (n *idleThreads) wakeForOwners(of threadSet, want int, t *fairQueue, now time.Time) {
	soon := n.soon(of, now)
	further := false // one of the owners that are not left to a thread has more events
	o := t.next()
	for looked := 0; o != nil && want > 0 && n.asleep&of != 0 && looked < farLookahead; looked++ {
		woken := n.rouse(n.threadFor(o, n.asleep&of, soon, t))
		want -= woken
		further = further || woken > 0 && o.counted > 1
		o = t.after(o)
	}
	for further && want > 0 && n.asleep&of != 0 {
		want -= n.rouse(n.asleep & of)
	}
}

// rouse notes that one of the threads is woken, and returns how many that are: 0 if there is none.
func (n *idleThreads) rouse(oneOf threadSet) int {
	thread := oneOf.any()
	n.asleep &^= thread
	n.waking |= thread
	return thread.len()
}

// threadFor returns which threads of asleep may be woken for o; none if it has no credit or is left to threads of soon.
func (n *idleThreads) threadFor(o *owner, asleep, soon threadSet, t *fairQueue) threadSet {
	t.grant(o)
	v := o.first()
	switch {
	case o.credit <= 0:
		return 0
	case v.warm&asleep != 0:
		return v.warm & asleep
	case o.leftTo(soon, v):
		return 0
	}
	return n.another(asleep)
}

// another returns the thread of a set that comes after the one that it returned before, so that new owners are divided
// among all threads.
func (n *idleThreads) another(of threadSet) threadSet {
	if above := of &^ (threadSet(1)<<n.next - 1); above != 0 {
		of = above
	}
	n.next = bits.TrailingZeros64(uint64(of)) + 1
	return of.any()
}

// worth returns how many threads n events of a mean expected cost are worth waking: at least one.
func worth(n int, mean time.Duration) int {
	if mean >= wakeWorth {
		return n
	}
	n = min(n, maxThreads*int(wakeWorth/leastCost)) // against overflow
	return max(1, int(time.Duration(n)*mean/wakeWorth))
}
