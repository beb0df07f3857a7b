package consumer

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
)

const (
	// waitingLook is how often a process that puts events off asks how many wait.
	waitingLook = 5 * time.Second
	// waitingPause is the least time between two looks, however many it puts off.
	waitingPause = 200 * time.Millisecond
	// waitingOwners is of how many owners it asks then: each costs the server time that grows with what waits of it, 0.2 to 0.5 s for 100 000.
	waitingOwners = 4
)

// waitingCounts is about how many events of each owner wait in the stream of schedules, and how many bytes those have, for it cannot refuse any by itself.
// Of owners it asks only when about as many wait in all as one may have, or half of the bytes that there may be are taken. It belongs to the settle
// goroutine.
type waitingCounts struct {
	looked   time.Time
	looking  bool
	total    int            // of all owners when it looked
	added    map[string]int // by this process since then; those that wanted to are there with 0
	sum      int            // of added
	bytes    int            // of the stream when it looked
	sumBytes int            // of added
	counted  map[string]waitingCount
	sizes    map[string]*entry // what this process put off of each owner, less what went since
}

type waitingCount struct {
	n     int
	bytes float64
	at    time.Time
}

// free is how many bytes may be put off, of all owners together.
func (w *waitingCounts) free(c *Consumer) int { return max(0, int(c.cfg.MaxBytes)-w.bytes-w.sumBytes) }

// crowded reports whether there may be owners of whom no more events may wait.
func (w *waitingCounts) crowded(c *Consumer) bool {
	most := c.cfg.OwnerMaxWaiting
	return most > 0 && w.total+w.sum >= most || w.bytes+w.sumBytes > w.free(c)
}

// mayWait reports whether one more event of owner may wait. Of an owner that has not been counted lately it may.
func (c *Consumer) mayWait(owner string) bool {
	w, most := &c.waits, c.cfg.OwnerMaxWaiting
	if w.added == nil {
		w.added, w.sizes = make(map[string]int), make(map[string]*entry)
	}
	full, unknown, since := false, false, time.Since(w.looked)
	if w.crowded(c) {
		w.added[owner] += 0
		n := w.counted[owner]
		unknown = time.Since(n.at) > 2*waitingLook
		full = !unknown && most > 0 && n.n+w.added[owner] >= most || w.bytesOf(owner) > float64(w.free(c))
	}
	full = full && !guard.StoredShares.Off()
	if !w.looking && since > waitingPause && (since > waitingLook || unknown || most > 0 && w.sum >= most/8 || w.sumBytes > w.free(c)/8) {
		c.countWaiting()
	}
	return !full
}

// bytesOf is about how many bytes wait of an owner that was counted.
func (w *waitingCounts) bytesOf(owner string) float64 {
	if e := w.sizes[owner]; e != nil {
		return e.bytes
	}
	return w.counted[owner].bytes
}

// nowWaits notes that an event of so many bytes was put off.
func (c *Consumer) nowWaits(owner string, size int) {
	w := &c.waits
	if w.added == nil {
		return
	}
	w.added[owner]++
	w.sum++
	w.sumBytes += size
	e := w.sizes[owner]
	if e == nil {
		e = &entry{}
		w.sizes[owner] = e
	}
	e.bytes, e.messages = e.bytes+float64(size), e.messages+1
}

// countWaiting asks how many wait in all, and then, if need be, of the owners of which most were put off here.
func (c *Consumer) countWaiting() {
	w := &c.waits
	w.looking = true
	before, beforeBytes := maps.Clone(w.added), w.sumBytes
	c.askWaiting(nil, func(total, bytes int, err error) {
		w.looked, w.looking = time.Now(), false
		if err != nil {
			c.log.Debug().Err(err).Msg("how many events wait for their time is not known; trying again")
			return
		}
		w.total, w.bytes = total, bytes
		w.sumBytes -= beforeBytes
		if most := c.cfg.OwnerMaxWaiting; (most == 0 || total < most/4*3) && bytes < w.free(c)/4*3 {
			w.counted = nil
			clear(w.sizes)
			c.forgetAdded(before, slices.Collect(maps.Keys(before)))
			return
		}
		maps.DeleteFunc(before, func(owner string, n int) bool {
			return n < c.cfg.OwnerMaxWaiting/8 && time.Since(w.counted[owner].at) < waitingLook && w.bytesOf(owner) < float64(w.free(c)/2)
		})
		most := slices.SortedFunc(maps.Keys(before), func(a, b string) int {
			return cmp.Compare(w.counted[b].n+before[b], w.counted[a].n+before[a])
		})
		for _, owner := range most[:min(len(most), waitingOwners)] {
			c.countWaitingOf(owner)
		}
	})
}

func (c *Consumer) countWaitingOf(owner string) {
	w := &c.waits
	before := map[string]int{owner: w.added[owner]}
	// Behind the last subject: the answer has how many there are, and names none.
	ask, _ := json.Marshal(map[string]any{"subjects_filter": c.cfg.Prefix.WaitingEvents(owner, "", ""), "offset": behindAll}) // cannot fail
	c.askWaiting(ask, func(total, _ int, err error) {
		if err != nil {
			return
		}
		if w.counted == nil {
			w.counted = make(map[string]waitingCount)
		}
		mean := float64(w.bytes) / float64(max(1, w.total))
		if e := w.sizes[owner]; e != nil && e.messages > 0 { // those that went had the mean size, and so have those that others put off
			e.bytes, e.messages = e.bytes/e.messages*float64(total), float64(total)
			if total == 0 {
				delete(w.sizes, owner)
			}
		}
		w.counted[owner] = waitingCount{total, mean * float64(total), time.Now()}
		c.forgetAdded(before, []string{owner})
	})
}

// forgetAdded takes off what has been counted.
func (c *Consumer) forgetAdded(before map[string]int, owners []string) {
	w := &c.waits
	for _, owner := range owners {
		w.sum -= before[owner]
		if w.added[owner] -= before[owner]; w.added[owner] <= 0 {
			delete(w.added, owner)
		}
	}
}

// askWaiting asks of the stream of schedules, and calls done on the settle goroutine.
func (c *Consumer) askWaiting(ask []byte, done func(total, bytes int, err error)) {
	m := &nats.Msg{Subject: "$JS.API.STREAM.INFO." + StreamSchedules, Data: ask}
	c.asker.ask(m, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		var a struct {
			Error *apiError `json:"error"`
			Total int       `json:"total"` // subjects; absent when there is none
			State struct {
				Messages int `json:"messages"`
				Bytes    int `json:"bytes"`
			} `json:"state"`
		}
		if err == nil {
			err = json.Unmarshal(answer.Data, &a)
		}
		if err == nil && a.Error != nil {
			err = a.Error
		}
		if ask == nil {
			a.Total = a.State.Messages
		}
		c.do(func() { done(a.Total, a.State.Bytes, err) })
	})
}

// tooManyWait is why an event whose publisher wants it to run later is refused.
func (c *Consumer) tooManyWait(owner string) *events.Failure {
	n, w := c.waits.counted[owner].n+c.waits.added[owner], &c.waits
	if most := c.cfg.OwnerMaxWaiting; most == 0 || n < most {
		return events.Fail(events.ReasonRate, "about %.0f bytes of events of owner %s wait for their time already: it may have as many as are free, %d", w.bytesOf(owner), owner, w.free(c))
	}
	return events.Fail(events.ReasonRate, "%d events of owner %s, or about as many, wait for their time already: it may have no more", c.cfg.OwnerMaxWaiting, owner)
}

// ticksFull reports whether an owner has more bytes waiting in the stream of schedules than there are free, by the number of its events: no more ticks of its
// schedules are made then. It asks only when half of the stream is taken.
func (c *Consumer) ticksFull(ctx context.Context, owner string) bool {
	f := c.usage.of(StreamSchedules)
	if guard.StoredShares.Off() || f.used(1) <= f.free(1) {
		return false
	}
	n := 0
	for _, filter := range c.cfg.Prefix.ScheduledOwner(owner) {
		of, err := c.countMessages(ctx, StreamSchedules, filter, behindAll) // each has a subject of its own
		if err != nil {
			return false
		}
		n += of
	}
	return float64(n)*float64(f.bytes.Load())/float64(max(1, f.messages.Load())) > float64(f.free(1))
}
