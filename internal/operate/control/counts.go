package control

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// A count of dead letters is the answer to all requests for countFor at least, and for countShare times as long as it
	// took: so counting takes at most a twentieth of the time of NATS and of the process.
	countFor, countShare = 2 * time.Second, 20
	// countTime limits the time of a count. A request waits no longer than requestTimeout, and a later one finds it.
	countTime = 3 * requestTimeout
	// maxCountJSON is the length of a LetterCount as JSON, at most.
	maxCountJSON = 2*events.MaxName + 150
	// keptCounts is how many owners have a count that a process keeps.
	keptCounts = 256
)

// CountLetters chooses dead letters to count. Empty fields choose all.
type CountLetters struct {
	Owner  string `json:"owner,omitempty"`
	Worker string `json:"worker,omitempty"` // WORKER or OWNER/WORKER
	Kind   string `json:"kind,omitempty"`
	Reason string `json:"reason,omitempty"`
	Limit  int    `json:"limit,omitempty"` // rows of the answer
	asker
}

// LetterCounts says how many dead letters there are.
type LetterCounts struct {
	Total  int           `json:"total"`          // of all that were chosen
	Counts []LetterCount `json:"counts"`         // the highest first
	More   int           `json:"more,omitempty"` // rows that are left out
	At     time.Time     `json:"at"`             // when they were counted, by the clock of the process
}

// LetterCount is how many letters a worker has of a kind and for a reason. "~" stands for names that are not valid, and
// for all names of which there are too many.
type LetterCount struct {
	Owner  string `json:"owner"`
	Worker string `json:"worker"`
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// answer answers from a count that several requests share.
func (l *letterCounts) answer(ctx context.Context, r CountLetters) (LetterCounts, error) {
	f, err := Filter{Owner: r.Owner, Worker: r.Worker, Kind: r.Kind, Reason: r.Reason}.Parse()
	if err != nil {
		return LetterCounts{}, err
	}
	limit, err := listed(r.Limit)
	if err != nil {
		return LetterCounts{}, err
	}
	c, err := l.get(ctx, f.Owner, time.Now(),
		func(c *letterCount) { l.life.running.Go(func() { l.count(c, f.Owner, r.by) }) })
	if err != nil {
		return LetterCounts{}, err
	}
	a, room := LetterCounts{Counts: []LetterCount{}, At: c.at}, l.ops.answerRoom()
	for _, n := range c.rows {
		if f.Worker != "" && n.Worker != f.Worker || f.Kind != "" && n.Kind != f.Kind || f.Reason != "" &&
			n.Reason != f.Reason {
			continue
		}
		a.Total += n.Letters
		if room -= maxCountJSON; len(a.Counts) == limit || room < 0 {
			a.More++
			continue
		}
		a.Counts = append(a.Counts, LetterCount{n.Owner, n.Worker, n.Kind, string(n.Reason), n.Letters})
	}
	return a, nil
}

// count counts the letters of an owner, or of all if it is "". The request that asked first may have ended. by is the
// owner to whose API it came, who is charged for the CPU time, or "".
func (l *letterCounts) count(c *letterCount, owner, by string) {
	ctx, stop := context.WithTimeout(l.life.ctx, countTime)
	defer stop()
	l.gate.job(by, func(func(context.Context) error) {
		rows, err := l.ops.dead.CountEach(ctx, owner)
		c.end(rows, err, time.Now())
	})
}

// letterCounts are the counts that a process keeps, by owner. "" has those of all owners.
type letterCounts struct {
	ops  *Operations
	life *life
	gate *gate // charges owners; nil in a command

	mu sync.Mutex
	of map[string]*letterCount
}

// letterCount is a count of letters, which may not have ended.
type letterCount struct {
	at   time.Time     // when it began
	done chan struct{} // closed when it has ended, and what follows is set
	rows []deadletter.Count
	err  error
	till time.Time // it answers until then
}

// end ends a count.
func (c *letterCount) end(rows []deadletter.Count, err error, now time.Time) {
	c.rows, c.err, c.till = rows, err, now.Add(countFor)
	if err == nil {
		c.till = now.Add(max(countFor, countShare*now.Sub(c.at)))
	}
	close(c.done)
}

// over reports whether another count may begin.
func (c *letterCount) over(now time.Time) bool { return c.ended() && now.After(c.till) }

func (c *letterCount) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// get returns the count of an owner, and waits for it. start starts one.
func (l *letterCounts) get(ctx context.Context, owner string, now time.Time,
	start func(*letterCount)) (*letterCount, error) {
	c, isNew := l.current(owner, now)
	if isNew {
		start(c)
	}
	select {
	case <-c.done:
		return c, c.err
	case <-ctx.Done():
		return nil, &Error{Code: http.StatusServiceUnavailable, Text: "the dead letters are still being counted: ask again in some seconds"}
	}
}

// current returns the count that answers now.
func (l *letterCounts) current(owner string, now time.Time) (c *letterCount, isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c = l.of[owner]; c != nil && !c.over(now) {
		return c, false
	}
	if len(l.of) >= keptCounts {
		l.forget(now)
	}
	if l.of == nil {
		l.of = map[string]*letterCount{}
	}
	c = &letterCount{at: now, done: make(chan struct{})}
	l.of[owner] = c
	return c, true
}

// forget removes counts that are over, and others that have ended if these were not enough. Those that have not ended
// are few: each has a request that waits, or that gave up a short time ago.
func (l *letterCounts) forget(now time.Time) {
	for owner, c := range l.of {
		if c.over(now) {
			delete(l.of, owner)
		}
	}
	for owner, c := range l.of {
		if len(l.of) < keptCounts {
			return
		}
		if owner != "" && c.ended() {
			delete(l.of, owner)
		}
	}
}
