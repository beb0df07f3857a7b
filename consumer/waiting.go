package consumer

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// waitingLook is how often a process that puts events off asks how many wait.
	waitingLook = 5 * time.Second
	// waitingPause is the least time between two looks, however many it puts off.
	waitingPause = 200 * time.Millisecond
	// waitingOwners is of how many owners it asks then: each costs the server time that grows with what waits of it, 0.2 to 0.5 s for 100 000.
	waitingOwners = 4
)

// waitingCounts is about how many events of each owner wait in the stream of schedules, which cannot refuse any by itself. Of owners it asks
// only when about as many wait in all as one may have. It belongs to the settle goroutine.
type waitingCounts struct {
	looked  time.Time
	looking bool
	total   int            // of all owners when it looked
	added   map[string]int // by this process since then; those that wanted to are there with 0
	sum     int            // of added
	counted map[string]waitingCount
}

type waitingCount struct {
	n  int
	at time.Time
}

// mayWait reports whether one more event of owner may wait. Of an owner that has not been counted lately it may.
func (c *Consumer) mayWait(owner string) bool {
	w, most := &c.waits, c.cfg.OwnerMaxWaiting
	if most == 0 {
		return true
	}
	if w.added == nil {
		w.added = make(map[string]int)
	}
	full, unknown, since := false, false, time.Since(w.looked)
	if w.total+w.sum >= most {
		w.added[owner] += 0
		n := w.counted[owner]
		unknown = time.Since(n.at) > 2*waitingLook
		full = !unknown && n.n+w.added[owner] >= most
	}
	if !w.looking && since > waitingPause && (since > waitingLook || unknown || w.sum >= most/8) {
		c.countWaiting()
	}
	return !full
}

// nowWaits notes that an event was put off.
func (c *Consumer) nowWaits(owner string) {
	if w := &c.waits; w.added != nil {
		w.added[owner]++
		w.sum++
	}
}

// countWaiting asks how many wait in all, and then, if need be, of the owners of which most were put off here.
func (c *Consumer) countWaiting() {
	w := &c.waits
	w.looking = true
	before := maps.Clone(w.added)
	c.askWaiting(nil, func(total int, err error) {
		w.looked, w.looking = time.Now(), false
		if err != nil {
			c.log.Debug().Err(err).Msg("how many events wait for their time is not known; trying again")
			return
		}
		w.total = total
		if total < c.cfg.OwnerMaxWaiting/4*3 {
			w.counted = nil
			c.forgetAdded(before, slices.Collect(maps.Keys(before)))
			return
		}
		maps.DeleteFunc(before, func(owner string, n int) bool {
			return n < c.cfg.OwnerMaxWaiting/8 && time.Since(w.counted[owner].at) < waitingLook
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
	ask, _ := json.Marshal(map[string]any{"subjects_filter": c.cfg.Prefix.WaitingEvents(owner, "", ""), "offset": 1 << 30}) // cannot fail
	c.askWaiting(ask, func(total int, err error) {
		if err != nil {
			return
		}
		if w.counted == nil {
			w.counted = make(map[string]waitingCount)
		}
		w.counted[owner] = waitingCount{total, time.Now()}
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
func (c *Consumer) askWaiting(ask []byte, done func(total int, err error)) {
	m := &nats.Msg{Subject: "$JS.API.STREAM.INFO." + StreamSchedules, Data: ask}
	c.asker.ask(m, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		var a struct {
			Error *apiError `json:"error"`
			Total int       `json:"total"` // subjects; absent when there is none
			State struct {
				Messages int `json:"messages"`
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
		c.do(func() { done(a.Total, err) })
	})
}

// tooManyWait is why an event whose publisher wants it to run later is refused.
func (c *Consumer) tooManyWait(owner string) *events.Failure {
	return events.Fail(events.ReasonRate, "%d events of owner %s, or about as many, wait for their time already: it may have no more", c.cfg.OwnerMaxWaiting, owner)
}
