package isolates

import (
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/guard"
)

const (
	// choreQuantum is the CPU time that an owner gets in each round of a thread for what its runs and contexts are to be told. It is as much as
	// dispatch gives to new events at once.
	choreQuantum = 500 * time.Microsecond
	// choreRound is after what CPU time a round is broken off for new events. The next one goes on with the owner after the last.
	choreRound = 2 * time.Millisecond
	// keptChores is how long the list of an owner with no chores left may be to be used again.
	keptChores = 64
)

// chore is something that a run, or a persistent context, is to be told: a timer that is due, an answer that came.
type chore struct {
	run   *run
	timer float64       // of JavaScript, that is due: where do is nil
	do    func(*thread) // says it
}

// tenant is an owner that has chores on a thread, or had some and is in debt.
type tenant struct {
	owner  string
	list   []chore
	first  int // of list that is not done yet
	credit time.Duration
}

func (o *tenant) n() int { return len(o.list) - o.first }

func (o *tenant) pop() chore {
	c := o.list[o.first]
	o.list[o.first] = chore{}
	if o.first++; o.first == len(o.list) {
		o.list, o.first = o.list[:0], 0
		if cap(o.list) > keptChores {
			o.list = nil
		}
	}
	return c
}

// chores are what waits on a thread to be told, by owner: deficit round robin in CPU time, as in dispatch. So nobody's timers are in the way of
// another's answers, however many are due. It is the thread's alone.
type chores struct {
	of   map[string]*tenant
	ring []*tenant
	at   int     // whose turn it is
	idle *tenant // to be used again
}

func (c *chores) add(x chore) {
	owner := x.run.attempt.Worker.Owner
	o := c.of[owner]
	if o == nil {
		if o, c.idle = c.idle, nil; o == nil {
			o = &tenant{}
		}
		o.owner, o.credit = owner, 0
		if c.of == nil {
			c.of = map[string]*tenant{}
		}
		c.of[owner] = o
		c.ring = append(c.ring, o)
	}
	o.list = append(o.list, x)
}

// wait reports whether there are any.
func (c *chores) wait() bool {
	return slices.ContainsFunc(c.ring, func(o *tenant) bool { return o.n() > 0 })
}

// forget lets go of the owner at index i of the ring.
func (c *chores) forget(i int) {
	o := c.ring[i]
	delete(c.of, o.owner)
	c.ring = slices.Delete(c.ring, i, i+1)
	c.idle = o
}

// forward ends the debts as far as somebody with chores has none any more: there is nothing else to do. It is false when nobody has any.
func (c *chores) forward() bool {
	least := time.Duration(1)
	for i := 0; i < len(c.ring); {
		o := c.ring[i]
		if o.n() == 0 {
			c.forget(i)
			continue
		}
		if least > 0 || o.credit > least {
			least = min(o.credit, 0)
		}
		i++
	}
	for _, o := range c.ring {
		o.credit -= least
	}
	return len(c.ring) > 0
}

// doChores is a round: each owner that has chores and is not in debt does some. It is false when none was done.
func (t *thread) doChores() bool {
	c, began, did := &t.chores, t.turned, false
	for n := len(c.ring); n > 0 && (t.turned-began < choreRound || guard.TimerBudget.Off()); n-- {
		if c.at >= len(c.ring) {
			c.at = 0
		}
		o := c.ring[c.at]
		c.at++
		o.credit = min(o.credit, 0) + choreQuantum
		for (o.credit > 0 || guard.TimerBudget.Off()) && o.n() > 0 {
			did = true
			before := t.turned
			t.do(o.pop())
			o.credit -= t.turned - before
		}
		if o.n() == 0 && o.credit >= 0 {
			c.at--
			c.forget(c.at)
		}
	}
	return did
}

func (t *thread) do(c chore) {
	if c.hold() {
		return
	}
	r := c.run
	if c.do != nil {
		c.do(t)
		return
	}
	if r.timers[c.timer] == nil {
		return // it was cleared, or the run is over
	}
	delete(r.timers, c.timer)
	t.call.Reset(opTimers).Numbers(c.timer)
	t.turn(r, t.call.Bytes(), nil)
}

// postTo hands the thread something to tell a run, from any goroutine. What else runs on the thread has its turn before.
func (t *thread) postTo(r *run, f func(*thread)) { t.put(chore{run: r, do: f}) }

func (t *thread) put(c chore) {
	t.mu.Lock()
	t.done = append(t.done, c)
	t.mu.Unlock()
	t.nudge()
}
