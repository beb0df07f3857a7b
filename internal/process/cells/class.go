package cells

import (
	"context"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/pinwheel-run/pinwheel/dispatch"
)

// class is owners who share a cell. It lives as long as the process. One goroutine at a time, run, starts and ends its
// cells; there is none while there is nothing to run.
type class struct {
	pools *Pools
	name  string
	pool  int // its number for the dispatcher
	pause *backoff.ExponentialBackOff

	mu     sync.Mutex
	state  state
	cell   *cell     // in running
	woken  []bool    // threads that were woken while there was no cell
	starts int       // cells that it has had
	waits  time.Time // since when it waits for room; zero = it does not
}

// state says whether a class has a cell.
type state uint8

const (
	absent   state = iota // there is none, and nothing to run
	starting              // a process starts, or will
	running               // it takes attempts
)

// The time after which a cell is started again that did not end by itself.
const (
	firstPause   = 10 * time.Millisecond
	longestPause = time.Minute
	// soundAfter is how long a cell lives before the pause is the first one again.
	soundAfter = time.Minute
)

func newClass(p *Pools, name string, pool int) *class {
	return &class{
		pools: p, name: name, pool: pool, woken: make([]bool, p.cfg.Pool.Threads+p.cfg.Pool.Background),
		pause: backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstPause),
			backoff.WithMaxInterval(longestPause), backoff.WithMaxElapsedTime(0)),
	}
}

// live returns the cell of the class; nil = there is none that takes attempts.
func (c *class) live() *cell {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cell
}

// wake has a thread ask for work. Without a cell, one is started.
func (c *class) wake(index int) {
	c.mu.Lock()
	live := c.cell
	if live == nil {
		c.woken[index] = true
		if c.state == absent {
			c.state = starting
			c.start()
		}
	}
	c.mu.Unlock()
	if live != nil {
		live.wake(index)
	}
}

// start has run called. c.mu must be held.
func (c *class) start() {
	p := c.pools
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closing {
		p.group.Go(c.run)
	}
}

// run starts cells, one after the other, as long as there is something to run.
func (c *class) run() {
	for c.pools.ends.Err() == nil {
		began := time.Now()
		sound := c.once(c.pools.ends)
		if sound || time.Since(began) > soundAfter {
			c.pause.Reset()
		}
		// What the dispatcher has for the class wakes a thread now, unless there is nothing.
		c.pools.dispatch.PoolEnded(c.pool)
		if c.rest() {
			return
		}
		if !sound {
			c.wait(c.pools.ends, c.pause.NextBackOff())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = absent
}

// rest reports whether nothing is to be run. Then there is no cell until a thread is woken.
func (c *class) rest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, woken := range c.woken {
		if woken {
			return false
		}
	}
	c.state = absent
	return true
}

func (c *class) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// once runs one cell. sound reports that it ended because it had nothing to do.
func (c *class) once(ctx context.Context) (sound bool) {
	p := c.pools
	if !c.enter(func() bool { return p.enter(ctx) }) {
		return true
	}
	defer p.leave()
	live, err := open(ctx, c)
	if err != nil {
		p.log.Error().Err(err).Str("class", c.name).Msg("a cell did not start")
		p.metrics.found(nil, err)
		p.metrics.badly(End{How: "start", Class: c.name, Why: err.Error()})
		c.forget()
		return false
	}
	p.metrics.started(live.process.Refused)
	c.mu.Lock()
	c.state, c.cell = running, live
	c.starts++
	woken := c.woken
	c.woken = make([]bool, len(woken))
	c.mu.Unlock()
	for index, is := range woken {
		if is {
			live.wake(index)
		}
	}
	err = live.serve(ctx)
	c.mu.Lock()
	c.state, c.cell = starting, nil
	c.mu.Unlock()
	live.reap(err)
	close(live.gone)
	return err == nil
}

// forget forgets which threads were woken: they are asleep for the dispatcher again.
func (c *class) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.woken)
}

// thread is the number of a thread of the class for the dispatcher.
func (c *class) thread(index int) int { return dispatch.ThreadOf(c.pool, index) }
