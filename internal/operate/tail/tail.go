package tail

import (
	"encoding/json"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

const (
	// Lines is how many lines a tail gets of a process in a second. A log line is one, and so is an ended event.
	Lines = 200
	// bytesPerSecond is how many bytes a tail gets of a process in a second, as JSON.
	bytesPerSecond = 256 << 10
	// waiting and waitingBytes limit what waits for the goroutine of a tail.
	waiting, waitingBytes = 256, 256 << 10
	// tellEvery is how often a tail tells what was left out.
	tellEvery = time.Second
)

// tail is one feed of this process.
type tail struct {
	hub            *Hub
	owner, subject string
	match          *matcher
	queue          chan *Entry
	queued         atomic.Int64 // bytes in queue
	renewed        atomic.Int64 // last renewal, in nanoseconds
	unfiltered     atomic.Uint64
	ended          chan struct{}

	// Of the goroutine.
	limited      uint64
	lines, bytes *rate.Limiter
}

func newTail(h *Hub, owner, subject string, m *matcher) *tail {
	t := &tail{
		hub: h, owner: owner, subject: subject, match: m, queue: make(chan *Entry, waiting), ended: make(chan struct{}),
		lines: rate.NewLimiter(Lines, Lines), bytes: rate.NewLimiter(bytesPerSecond, bytesPerSecond),
	}
	t.renewed.Store(time.Now().UnixNano())
	return t
}

// offer gives e to the goroutine of the tail, which compares it with grep: that may take long. It does not wait.
func (t *tail) offer(e *Entry) {
	if !t.match.wants(e) {
		return
	}
	if t.queued.Add(e.size()) <= waitingBytes {
		select {
		case t.queue <- e:
			return
		default:
		}
	}
	t.queued.Add(-e.size())
	t.unfiltered.Add(1)
}

// run sends what the filter chooses, until the tail ends or is not renewed.
func (t *tail) run() {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.ended:
			return
		case e := <-t.queue:
			t.queued.Add(-e.size())
			if t.match.finds(e) {
				t.send(e)
			}
		case now := <-tick.C:
			if now.UnixNano()-t.renewed.Load() > int64(lifetime) {
				t.hub.mu.Lock()
				t.hub.remove(t)
				t.hub.mu.Unlock()
				return
			}
			t.tell(now)
		}
	}
}

// send publishes e within the limits.
func (t *tail) send(e *Entry) {
	now := time.Now()
	if t.lines.TokensAt(now) < 1 || !t.hub.lines.AllowN(now, 1) {
		t.limited++
		return
	}
	data, err := json.Marshal(e)
	if err != nil || !t.bytes.AllowN(now, len(data)) || t.hub.cfg.Publish(t.subject, data) != nil {
		t.limited++
		return
	}
	t.lines.AllowN(now, 1)
}

// tell publishes how much was left out since the last time.
func (t *tail) tell(now time.Time) {
	unfiltered := t.unfiltered.Swap(0)
	if t.limited == 0 && unfiltered == 0 {
		return
	}
	data, err := json.Marshal(&Entry{Type: TypeLeftOut, Node: t.hub.cfg.Node, Time: now, Owner: t.owner,
		Limited: t.limited, Unfiltered: unfiltered})
	if err == nil {
		err = t.hub.cfg.Publish(t.subject, data)
	}
	if err != nil { // the next one tells it
		t.unfiltered.Add(unfiltered)
		return
	}
	t.limited = 0
}
