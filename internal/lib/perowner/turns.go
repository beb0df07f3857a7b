package perowner

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// What an owner may take: TurnShare of one processor, and TurnBurst at once.
const (
	TurnShare = 0.25
	TurnBurst = time.Second
)

// Turns divides the CPU time that Go takes for owners: a piece of work runs when it is its owner's turn, and its time
// is charged to that owner. So an owner whose work takes long delays only itself. Any goroutine may call its methods.
// Make it with NewTurns.
type Turns struct {
	used Rates // nanoseconds of CPU time

	mu    sync.Mutex
	free  int                 // pieces of work that may begin at once
	of    map[string]*account // only owners that have work
	ready []*account          // owners with work that may begin, the next one first
	spare *account            // to use again
}

// account has the work of an owner.
type account struct {
	owner   string
	waiting []chan struct{} // closed when the work may begin
	state   state
}

type state int

const (
	idle    state = iota // nothing waits
	queued               // in Turns.ready
	running              // a piece of work is under way
	indebt               // work waits until the owner has paid back
)

// NewTurns makes Turns for the processors that Go uses.
func NewTurns() *Turns {
	return &Turns{
		used: Rates{PerSecond: int(TurnShare * float64(time.Second)), Burst: int(TurnBurst)},
		free: runtime.GOMAXPROCS(0), of: map[string]*account{},
	}
}

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
		if err := ctx.Err(); err != nil { // both were ready
			t.leave(owner, 0)
			return err
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
	a := t.account(owner)
	if a.state == idle && t.free > 0 && len(t.ready) == 0 && t.used.Owes(owner, time.Now()) == 0 {
		a.state = running
		t.free--
		return nil
	}
	wait = make(chan struct{})
	a.waiting = append(a.waiting, wait)
	t.queue(a)
	return wait
}

// leaveQueue takes back a piece of work that has not begun, or ends one that could have.
func (t *Turns) leaveQueue(owner string, wait chan struct{}) {
	t.mu.Lock()
	a := t.of[owner]
	for i, w := range a.waiting {
		if w == wait {
			a.waiting = append(a.waiting[:i], a.waiting[i+1:]...)
			t.forget(a)
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
	t.used.charge(owner, int(took), time.Now())
	a.state = idle
	t.free++
	t.queue(a)
	t.next()
	t.forget(a)
}

// queue puts an owner that is idle and has work where it belongs. The caller holds the lock.
func (t *Turns) queue(a *account) {
	if a.state != idle || len(a.waiting) == 0 {
		return
	}
	if owes := t.used.Owes(a.owner, time.Now()); owes > 0 {
		a.state = indebt
		time.AfterFunc(owes, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			a.state = idle
			t.queue(a)
			t.next()
			t.forget(a)
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
			t.forget(a)
			continue
		}
		a.state = running
		t.free--
		close(a.waiting[0])
		a.waiting = a.waiting[1:]
	}
}

// account returns what is known of an owner. The caller holds the lock.
func (t *Turns) account(owner string) *account {
	a := t.of[owner]
	if a == nil {
		if a, t.spare = t.spare, nil; a == nil {
			a = &account{}
		}
		a.owner = owner
		t.of[owner] = a
	}
	return a
}

// forget removes an owner that has no work. What it has used is not forgotten. The caller holds the lock.
func (t *Turns) forget(a *account) {
	if a.state == idle && len(a.waiting) == 0 && t.of[a.owner] == a {
		delete(t.of, a.owner)
		t.spare = a
	}
}
