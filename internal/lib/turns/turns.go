// Package turns divides the CPU time that Go takes for requests of owners: a piece of work runs when it is its owner's
// turn, and its time is charged to that owner. So an owner whose work takes long delays only itself.
package turns

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// What an owner may take: Share of one processor, and Burst at once.
const (
	Share = 0.25
	Burst = time.Second
)

// Turns does work of owners. Any goroutine may call its methods. Make it with New.
type Turns struct {
	mu    sync.Mutex
	free  int                 // pieces of work that may begin at once
	of    map[string]*account // only owners that have work or a debt
	ready []*account          // owners with work that may begin, the next one first
}

// account is what is known of an owner.
type account struct {
	waiting []chan struct{} // closed when the work may begin
	state   state
	used    time.Duration // of Burst, at the time at
	at      time.Time
}

type state int

const (
	idle    state = iota // nothing waits
	queued               // in Turns.ready
	running              // a piece of work is under way
	indebt               // work waits until the owner has paid back
)

// New makes Turns for the processors that Go uses.
func New() *Turns { return &Turns{free: runtime.GOMAXPROCS(0), of: map[string]*account{}} }

// Do calls f when it is the owner's turn. f computes and waits for nothing. An owner has one piece of work under way at
// a time. The error is that of ctx, when it ends before f begins.
func (t *Turns) Do(ctx context.Context, owner string, f func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if wait := t.enter(owner); wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			t.leaveQueue(owner, wait)
			return ctx.Err()
		}
	}
	began := time.Now()
	defer func() { t.leave(owner, time.Since(began)) }()
	f()
	return nil
}

// enter begins a piece of work, or returns a channel that is closed when it may begin.
func (t *Turns) enter(owner string) (wait chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.of[owner]
	if a == nil {
		a = &account{at: time.Now()}
		t.of[owner] = a
	}
	if a.state == idle && t.free > 0 && len(t.ready) == 0 && a.debt(time.Now()) == 0 {
		a.state = running
		t.free--
		return nil
	}
	wait = make(chan struct{})
	a.waiting = append(a.waiting, wait)
	t.queue(owner, a)
	return wait
}

// leaveQueue takes back a piece of work that has not begun, or ends one that could have.
func (t *Turns) leaveQueue(owner string, wait chan struct{}) {
	t.mu.Lock()
	a := t.of[owner]
	for i, w := range a.waiting {
		if w == wait {
			a.waiting = append(a.waiting[:i], a.waiting[i+1:]...)
			t.mu.Unlock()
			return
		}
	}
	t.mu.Unlock()
	t.leave(owner, 0)
}

func (t *Turns) leave(owner string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.of[owner]
	a.debt(time.Now())
	a.used += took
	a.state = idle
	t.free++
	t.queue(owner, a)
	t.next()
	t.forget()
}

// queue puts an owner that is idle and has work where it belongs. The caller holds the lock.
func (t *Turns) queue(owner string, a *account) {
	if a.state != idle || len(a.waiting) == 0 {
		return
	}
	if debt := a.debt(time.Now()); debt > 0 {
		a.state = indebt
		time.AfterFunc(debt, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			a.state = idle
			t.queue(owner, a)
			t.next()
		})
		return
	}
	a.state = queued
	t.ready = append(t.ready, a)
	t.next()
}

// next begins work. The caller holds the lock.
func (t *Turns) next() {
	for t.free > 0 && len(t.ready) > 0 {
		a := t.ready[0]
		t.ready = t.ready[1:]
		if a.state = idle; len(a.waiting) == 0 {
			continue
		}
		a.state = running
		t.free--
		close(a.waiting[0])
		a.waiting = a.waiting[1:]
	}
}

// forgotten is how many owners are looked at, each time, whether they have paid back.
const forgotten = 2

// forget removes owners that have neither work nor a debt. The caller holds the lock.
func (t *Turns) forget() {
	n := 0
	for owner, a := range t.of {
		if a.state == idle && len(a.waiting) == 0 {
			if a.debt(time.Now()); a.used == 0 {
				delete(t.of, owner)
			}
		}
		if n++; n == forgotten {
			return
		}
	}
}

// debt is how long the owner waits until its next piece of work.
func (a *account) debt(now time.Time) time.Duration {
	a.used = max(0, a.used-time.Duration(float64(now.Sub(a.at))*Share))
	a.at = now
	return time.Duration(float64(max(0, a.used-Burst)) / Share)
}
