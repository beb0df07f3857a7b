package dispatch

import (
	"math/bits"
	"time"
)

// threadSet is a set of threads: bit i is thread i.
type threadSet uint64

func (s threadSet) len() int { return bits.OnesCount64(uint64(s)) }

// any is a set of one thread of s. It is the lowest numbered, so that few threads stay busy and the rest sleep.
func (s threadSet) any() threadSet { return s & -s }

// each calls f for each thread.
func (s threadSet) each(f func(thread int)) {
	for ; s != 0; s &= s - 1 {
		f(bits.TrailingZeros64(uint64(s)))
	}
}

// idleThreads knows which threads sleep, and which were woken and have not called Next yet. Whenever the dispatcher's
// lock is free and an event could start, no thread sleeps or at least one is waking.
type idleThreads struct {
	asleep  threadSet
	waking  threadSet
	wokenAt time.Time // the last time one was woken
}

// up notes that the thread has called Next.
func (n *idleThreads) up(thread threadSet) {
	n.asleep &^= thread
	n.waking &^= thread
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
func (n *idleThreads) sleep(thread threadSet) { n.asleep |= thread }

// wake chooses the threads to wake. Together with those that are waking, there are then as many as runnable events of a
// mean expected cost are worth. It prefers threads on which the next owners are warm. Only threads in of run these
// events.
func (n *idleThreads) wake(of threadSet, runnable int, mean time.Duration, t *fairQueue, now time.Time) (woken threadSet) {
	if runnable == 0 || n.asleep&of == 0 {
		return 0
	}
	want := worth(runnable, mean)
	if n.waking&of == 0 || now.Sub(n.wokenAt) < lateAfter {
		want -= (n.waking & of).len()
	}
	if want <= 0 {
		return 0
	}
	o := t.newcomers.first
	if o == nil {
		o = t.ring.first
	}
	for ; want > 0 && n.asleep&of != 0; want-- {
		thread := (n.asleep & of).any()
		if o != nil {
			if warm := n.asleep & of & o.warm(); warm != 0 {
				thread = warm.any()
			}
			o = t.after(o)
		}
		n.asleep &^= thread
		n.waking |= thread
		woken |= thread
	}
	n.wokenAt = now
	return woken
}

// worth returns how many threads n events of a mean expected cost are worth waking: at least one.
func worth(n int, mean time.Duration) int {
	if mean >= wakeWorth {
		return n
	}
	n = min(n, maxThreads*int(wakeWorth/leastCost)) // against overflow
	return max(1, int(time.Duration(n)*mean/wakeWorth))
}
