package runs

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

const (
	// pendingBytes bounds the lines of attempts that have not ended. An owner has at most as much of it as is free.
	pendingBytes = 32 << 20
	// sweepEvery is how often lines of attempts are forgotten whose last line is that old, or older. Attempts end sooner,
	// or write again: these are lines that came after the end.
	sweepEvery = 20 * time.Minute
)

// lines are the log lines of attempts that have not ended. Publishers choose ids: if two events of a worker have the
// same one and run at the same time, the one that ends first has the lines of both.
type lines struct {
	n      atomic.Int64 // of attempts with lines
	mu     sync.Mutex
	of     map[attemptKey]*pending
	owners map[string]int // bytes
	bytes  int
}

// attemptKey names an attempt in log lines.
type attemptKey struct {
	owner, worker, event string
	attempt              int
}

// pending are the lines of one attempt.
type pending struct {
	lines []Line
	bytes int
	lost  int
	last  time.Time
}

// pendingOverhead is about what an attempt with lines takes beside them.
const pendingOverhead = 256

// add keeps a line, if the attempt and its owner have room for it.
func (l *lines) add(line *events.LogLine) {
	key := attemptKey{line.Owner, line.Worker, line.EventID, line.Attempt}
	one := Line{Time: line.Time, Level: line.Level, Text: cut(line.Text, MaxLines/2), Stack: cut(line.Stack, MaxLines/4)}
	l.mu.Lock()
	defer l.mu.Unlock()
	p, size := l.of[key], one.size()
	if p == nil {
		size += pendingOverhead + len(key.event)
	}
	fits := l.owners[key.owner]+size <= pendingBytes-l.bytes
	if p == nil {
		if !fits {
			return
		}
		if l.of == nil {
			l.of, l.owners = map[attemptKey]*pending{}, map[string]int{}
		}
		p = &pending{}
		l.of[key] = p
		l.n.Add(1)
	}
	p.last = line.Time
	if !fits || p.bytes+one.size() > MaxLines {
		p.lost++
		return
	}
	p.lines = append(p.lines, one)
	p.bytes += one.size()
	l.owners[key.owner] += size
	l.bytes += size
}

// take returns the lines of an attempt that has ended, and how many further ones were not kept.
func (l *lines) take(e *lifecycle.Delivery, attempt int) (list []Line, lost int) {
	if l.n.Load() == 0 {
		return nil, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := attemptKey{e.Owner, e.Worker, e.ID, attempt}
	p := l.of[key]
	if p == nil {
		return nil, 0
	}
	l.drop(key, p)
	return p.lines, p.lost
}

// drop forgets an attempt. l.mu must be held.
func (l *lines) drop(key attemptKey, p *pending) {
	delete(l.of, key)
	l.n.Add(-1)
	size := p.size(key)
	l.bytes -= size
	if l.owners[key.owner] -= size; l.owners[key.owner] == 0 {
		delete(l.owners, key.owner)
	}
}

func (p *pending) size(key attemptKey) int { return p.bytes + pendingOverhead + len(key.event) }

// sweep forgets attempts that have written nothing for long.
func (l *lines) sweep(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, p := range l.of {
		if now.Sub(p.last) > sweepEvery {
			l.drop(key, p)
		}
	}
}
