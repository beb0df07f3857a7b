package consumer

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/assets"
)

// record is what the bucket PINWHEEL_ATTEMPTS holds of an event that did not end with its first
// run. Deliveries alone do not tell attempts: a delivery may have had no run (given back), or many
// (retries in one process).
type record struct {
	Failed   int       `json:"failed"`           // runs that failed
	Returned int       `json:"returned"`         // deliveries with no run but those, or whose last run has failed
	FirstAt  time.Time `json:"firstAt,omitzero"` // first failure

	// Crashes are the runs that ended with their process. Once the event is watched they are told by Running, which is
	// stored before each run begins and when it has ended, and deliveries do not matter any more.
	Crashes      int  `json:"crashes,omitempty"`
	CrashedAlone bool `json:"crashedAlone,omitempty"` // one of them was while Alone
	Watched      bool `json:"watched,omitempty"`
	Running      bool `json:"running,omitempty"`
	Alone        bool `json:"alone,omitempty"` // and nothing else runs in its process

	History []failed `json:"history,omitempty"` // the last runs that failed, oldest first
	Moved   *moved   `json:"moved,omitempty"`   // it is being put off

	// Stored is when the event was stored, in nanoseconds: a stream that was deleted and made anew gives the same sequences to others.
	// 0 in records of earlier binaries.
	Stored int64 `json:"stored,omitempty"`

	version int // counts stores
}

// failed is one failed run.
type failed struct {
	At      time.Time     `json:"at"`
	Attempt int           `json:"attempt"`
	Reason  events.Reason `json:"reason"`
	Message string        `json:"message"`
	Node    string        `json:"node"`
}

// maxHistory bounds record.History.
const maxHistory = 10

// delivered counts the crash with which the delivery before may have ended; deliveries is their number with the present one.
// It is counted again if this process dies before it stores anything, and comes to the same.
func (r *record) delivered(deliveries int) {
	switch {
	case r.Watched && r.Running:
		r.Crashes++
		r.CrashedAlone = r.CrashedAlone || r.Alone
	case !r.Watched && r.unexplained(deliveries):
		// Of all deliveries that nobody explains one may have had a run: after it the event is watched before it runs.
		r.Crashes = 1
	}
	r.Running, r.Alone = false, false
}

// unexplained reports whether a delivery, of the given number with the present one, ended in a way that the record does not tell. A nil
// record tells nothing.
func (r *record) unexplained(deliveries int) bool {
	if r != nil {
		deliveries -= r.Returned
	}
	return deliveries > 1
}

// attempt is the number of the run that comes next.
func (r *record) attempt() int { return r.Failed + r.Crashes + 1 }

func (r *record) fail(f failed) {
	r.Failed++
	f.Message = strings.ToValidUTF8(f.Message[:min(len(f.Message), carriedMessage)], "") // a letter keeps no more of it
	if r.FirstAt.IsZero() {
		r.FirstAt = f.At
	}
	r.History = append(r.History, f)
	if len(r.History) > maxHistory {
		r.History = r.History[len(r.History)-maxHistory:]
	}
}

func attemptsSubject(h *held) string {
	return "$KV." + BucketAttempts + "." + h.from.stream + "." + strconv.FormatUint(h.event.Origin.Seq, 10)
}

// load looks up the attempts of an event that was delivered before, and then submits it. The
// question goes to the stream's leader: a follower may not know yet what was stored a moment ago.
func (c *Consumer) load(h *held) {
	c.lookUp(assets.BucketStream(BucketAttempts), attemptsSubject(h), func(m *storedMsg, err error) {
		if err != nil {
			c.arriveLater(h, err, "attempts of a redelivered event could not be read; trying again", func() { c.load(h) })
			return
		}
		h.tries = nil
		r := m.record().of(h.event)
		if h.from.stream != StreamParked && r.unexplained(h.event.Origin.Deliveries) {
			c.askParked(h, func() { c.loaded(h, r) })
			return
		}
		c.do(func() { c.loaded(h, r) })
	})
}

func (c *Consumer) loaded(h *held, r *record) {
	if r != nil && r.Moved != nil {
		c.moveAgain(h, r)
		return
	}
	if r == nil && h.record != nil {
		r = h.record // what the event has brought with it
	}
	if r == nil {
		r = &record{}
	}
	h.record = r
	r.delivered(h.event.Origin.Deliveries)
	// A parked event brings with it what it had before.
	h.event.Attempt += r.attempt() - 1
	h.event.Crashes += r.Crashes
	h.event.CrashedAlone = h.event.CrashedAlone || r.CrashedAlone
	c.enter(h)
}

// record is m as a record; nil when there is none.
func (m *storedMsg) record() *record {
	if m == nil || len(m.Data) == 0 { // a deletion marker
		return nil
	}
	r := &record{}
	if err := json.Unmarshal(m.Data, r); err != nil || r.Failed < 0 || r.Returned < 0 || r.Crashes < 0 {
		return nil // not ours, or broken: count by deliveries
	}
	return r
}

// of is r if it is e's, and nil if it is that of an event that had e's place before.
func (r *record) of(e *events.Event) *record {
	if r != nil && r.Stored != 0 && r.Stored != e.Stored.UnixNano() {
		return nil
	}
	return r
}

// store writes h's record and then runs then (may be nil) on the settle goroutine, whether or not
// it was stored: a lost record only makes an attempt count too high.
func (c *Consumer) store(h *held, then func()) {
	h.record.version++
	h.record.Stored = h.event.Stored.UnixNano()
	c.put(h, *h.record, newRetrier(c.cfg.AckWait/2), then)
}

func (c *Consumer) put(h *held, r record, tries *retrier, then func()) {
	if h.lapsed { // another event may have its place
		if then != nil {
			then()
		}
		return
	}
	body, err := json.Marshal(r)
	if err != nil {
		c.log.Error().Err(err).Msg("attempts cannot be encoded")
		return
	}
	m := &nats.Msg{Subject: attemptsSubject(h), Data: body}
	c.asker.ask(m, c.answerWait(), time.Now(), func(answer *nats.Msg, err error) {
		if err = pubAck(answer, err); err != nil {
			c.noRoom(assets.BucketStream(BucketAttempts), err)
			c.recreate()
		}
		c.do(func() {
			superseded := h.record == nil || h.record.version != r.version
			if err != nil && !superseded && c.after(tries, func() { c.put(h, r, tries, then) }) {
				return
			}
			if then != nil {
				then()
			}
		})
	})
}

// forget removes h's record: the event has ended. The marker that is left goes after a minute.
func (c *Consumer) forget(h *held) {
	m := &nats.Msg{Subject: attemptsSubject(h), Header: nats.Header{
		"KV-Operation": {"PURGE"}, headerRollup: {"sub"}, "Nats-TTL": {"60s"},
	}}
	if err := c.nc.PublishMsg(m); err != nil {
		c.log.Debug().Err(err).Msg("attempts of an ended event stay until their time is over")
	}
}
