package cells

import (
	"context"
	"time"
)

// enter waits until there is room for the process of one more cell. Those that rest make room. It returns false when
// the process ends. One class looks for room, and the others wait for it in their order: each look reads the memory of
// all cells.
func (p *Pools) enter(ctx context.Context) bool {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return false
	}
	gone := make(chan struct{}) // is closed when the cell has left that was asked to make room: one does that
	close(gone)
	for ctx.Err() == nil {
		p.mu.Lock()
		n := p.cells
		p.mu.Unlock()
		if n == 0 || n < p.cfg.Most && !p.full() {
			p.mu.Lock()
			p.cells++ // nobody else adds one
			p.mu.Unlock()
			return true
		}
		select {
		case <-gone:
			if c := p.resting(); c != nil && c.stop() {
				gone = c.gone
			}
		default:
		}
		select {
		case <-p.left:
		case <-time.After(lookForRoom):
		case <-ctx.Done():
		}
	}
	return false
}

// full reports whether the pools have as much memory as they may.
func (p *Pools) full() bool {
	used := p.Pool.Stats().HeapBytes
	p.each(func(c *cell) { used += privateBytes(c.process.PID) })
	return used >= p.cfg.HeapMax
}

// lookForRoom is how often a class that waits for room looks for a cell that rests.
const lookForRoom = 100 * time.Millisecond

// leave says that the process of a cell has ended.
func (p *Pools) leave() {
	p.mu.Lock()
	p.cells--
	p.mu.Unlock()
	select {
	case p.left <- struct{}{}:
	default:
	}
}

// resting returns the cell that has rested longest; nil = each has attempts.
func (p *Pools) resting() (longest *cell) {
	var since time.Time
	p.each(func(c *cell) {
		if at := c.restsSince(); !at.IsZero() && (longest == nil || at.Before(since)) {
			longest, since = c, at
		}
	})
	return longest
}
