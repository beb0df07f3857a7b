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
	asleep   threadSet
	waking   threadSet
	wokenAt  time.Time   // the last time one was woken
	attempts []int       // that each thread has
	due      []time.Time // when each thread that works is expected to call Next
	next     int         // the thread that another tries first
	look     time.Time   // when Run looks whether events were left in vain to threads that work; zero = none are left

	since []time.Time   // when each thread fell asleep; zero = it has called Next since
	slept time.Duration // how long threads slept before that, together
}

func newIdleThreads(cfg Config) idleThreads {
	n := cfg.Threads + cfg.Background
	return idleThreads{attempts: make([]int, n), due: make([]time.Time, n), since: make([]time.Time, n)}
}

// up notes that the thread has called Next.
func (n *idleThreads) up(thread int, now time.Time) {
	n.asleep &^= 1 << thread
	n.waking &^= 1 << thread
	if since := n.since[thread]; !since.IsZero() {
		n.slept += now.Sub(since)
		n.since[thread] = time.Time{}
	}
}

// sleptUntil returns how long all threads have slept, together.
func (n *idleThreads) sleptUntil(now time.Time) time.Duration {
	all := n.slept
	for _, since := range n.since {
		if !since.IsZero() {
			all += now.Sub(since)
		}
	}
	return all
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
func (n *idleThreads) sleep(thread int, now time.Time) {
	n.asleep |= 1 << thread
	n.since[thread] = now
}

// soon returns the threads of a set that take events soon: those that were woken, and those that work and are expected
// to call Next. A thread whose slots are all taken does not call it: it counts until it is late by overdue.
func (n *idleThreads) soon(of threadSet, now time.Time) (soon threadSet) {
	if now.Sub(n.wokenAt) < overdue {
		soon = n.waking & of
	}
	(of &^ (n.asleep | n.waking)).each(func(thread int) {
		left := n.due[thread].Sub(now)
		if left <= soonEnough && left > -overdue {
			soon |= 1 << thread
		}
	})
	return soon
}

// took notes what the thread takes by its Next.
func (n *idleThreads) took(thread int, batch []*lifecycle.Attempt, now time.Time) {
	n.due[thread] = now
	for _, a := range batch {
		n.due[thread] = n.due[thread].Add(a.Slot.(*run).cost)
	}
}

// busy notes that it is not known when the thread calls Next: no events are left to it.
func (n *idleThreads) busy(thread int, now time.Time) { n.due[thread] = now.Add(time.Hour) }

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
