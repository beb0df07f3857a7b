package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

// judge takes every reply of a run, and knows what each must be.
type judge struct {
	scenario *scenario
	events   int
	bare     bool // replies of peers are bodies without headers

	replied func(id int, at time.Time) // of every first reply
	all     chan struct{}              // closed when every event has one

	mu       sync.Mutex
	sent     int     // how many of the events there will be: at first all
	attempts []uint8 // by event; of its last reply, 0 = none
	answered int
	again    int // replies of redelivered events
	faults   []string
	more     int // faults that are not in the list
	last     time.Time
	buf      []byte
}

// maxFaults are told; the rest is counted.
const maxFaults = 5

func newJudge(s *scenario, n int, bare bool) *judge {
	return &judge{scenario: s, events: n, sent: n, bare: bare, attempts: make([]uint8, n), all: make(chan struct{}), last: time.Now()}
}

// take takes a reply that came to the subject of an event's number.
func (j *judge) take(m *nats.Msg) {
	at := time.Now()
	id, err := strconv.Atoi(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:])
	if err != nil || id < 0 || id >= j.events {
		j.mu.Lock()
		j.fault("a reply came to %s: no event asked for that", m.Subject)
		j.mu.Unlock()
		return
	}
	attempt := 1
	if !j.bare {
		attempt, _ = strconv.Atoi(first(m.Header, events.HeaderAttempt))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.checkHead(id, m)
	j.buf = j.scenario.partOf(id).reply(j.buf[:0], id)
	j.checkBody(id, m.Data)
	j.count(id, attempt, at)
}

// takeStream takes a reply whose body was read in chunks.
func (j *judge) takeStream(id int, r *events.Reply, body []byte, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r.EventID != eventID(id) || r.Status != 200 {
		j.fault("event %d: reply to %q with status %d", id, r.EventID, r.Status)
	}
	j.buf = j.scenario.partOf(id).reply(j.buf[:0], id)
	j.checkBody(id, body)
	j.count(id, r.Attempt, at)
}

// eventID is the header of event id.
func eventID(id int) string { return "e" + strconv.Itoa(id) }

// first is the first value of a header as it is written, without looking for other spellings.
func first(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (j *judge) checkHead(id int, m *nats.Msg) {
	if j.bare {
		return
	}
	if failure := first(m.Header, events.HeaderError); failure != "" {
		j.fault("event %d failed: %s", id, failure)
	}
	if got := first(m.Header, events.HeaderEventID); len(got) < 2 || got[0] != 'e' || !equalInt(got[1:], id) {
		j.fault("event %d: the reply says it is to %q", id, got)
	}
	if status := first(m.Header, events.HeaderStatus); j.scenario.partOf(id).kind == events.Fetch && status != "200" {
		j.fault("event %d: status %q", id, status)
	}
}

func equalInt(s string, n int) bool {
	v, err := strconv.Atoi(s)
	return err == nil && v == n
}

// checkBody compares with what buf holds.
func (j *judge) checkBody(id int, body []byte) {
	if !bytes.Equal(body, j.buf) {
		j.fault("event %d: the reply is %.80q (%d bytes) and must be %.80q (%d bytes)", id, body, len(body), j.buf, len(j.buf))
	}
}

// count counts a reply. One of the same attempt, or of an earlier, is doubled: nothing but a redelivery makes two.
func (j *judge) count(id, attempt int, at time.Time) {
	j.last = at
	attempt = min(max(attempt, 0), 255)
	switch before := j.attempts[id]; {
	case attempt < 1:
		j.fault("event %d: attempt %d", id, attempt)
	case before == 0:
		j.attempts[id] = uint8(attempt) //nolint:gosec // bounded above
		j.answered++
		if j.replied != nil {
			j.replied(id, at)
		}
		if j.answered == j.events {
			close(j.all)
		}
	case attempt > int(before):
		j.attempts[id] = uint8(attempt) //nolint:gosec // bounded above
		j.again++
	default:
		j.fault("event %d: two replies of attempt %d, though it was not delivered again", id, attempt)
	}
}

// fault notes what must not be. The lock is held.
func (j *judge) fault(format string, args ...any) {
	if len(j.faults) < maxFaults {
		j.faults = append(j.faults, fmt.Sprintf(format, args...))
	} else {
		j.more++
	}
}

// note is fault for callers without the lock.
func (j *judge) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fault(format, args...)
}

func (j *judge) progress() (answered int, last time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.answered, j.last
}

// verdict is an error when anything was lost, doubled or wrong: then there is nothing to report.
func (j *judge) verdict() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var errs []error
	if lost := j.sent - j.answered; lost > 0 {
		var ids []string
		for id, a := range j.attempts[:j.sent] {
			if a == 0 && len(ids) < maxFaults {
				ids = append(ids, strconv.Itoa(id))
			}
		}
		errs = append(errs, fmt.Errorf("lost: %d of %d events have no reply, the first are %s", lost, j.sent, strings.Join(ids, ", ")))
	}
	for _, f := range j.faults {
		errs = append(errs, errors.New(f))
	}
	if j.more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", j.more))
	}
	return errors.Join(errs...)
}
