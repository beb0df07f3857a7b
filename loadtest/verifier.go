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

// verifier takes every reply of a run, and knows the right content of each.
type verifier struct {
	scenario *scenario
	events   int
	bare     bool // replies of peers are bodies without headers

	replied func(id int, at time.Time) // is called for every first reply
	all     chan struct{}              // closed when every event has a reply

	mu       sync.Mutex
	sent     int     // how many of the events will be sent: at first all
	attempts []uint8 // attempt of the last reply of each event, 0 = none
	answered int
	again    int // replies of redelivered events
	faults   []string
	more     int // number of faults that are not in the list
	last     time.Time
	buf      []byte
}

// maxFaults is the number of reported faults. Further ones are only counted.
const maxFaults = 5

func newVerifier(s *scenario, n int, bare bool) *verifier {
	return &verifier{scenario: s, events: n, sent: n, bare: bare, attempts: make([]uint8, n), all: make(chan struct{}),
		last: time.Now()}
}

// take takes a reply that arrived on the subject of an event's number.
func (j *verifier) take(m *nats.Msg) {
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
func (j *verifier) takeStream(id int, r *events.Reply, body []byte, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r.EventID != eventID(id) || r.Status != 200 {
		j.fault("event %d: reply to %q with status %d", id, r.EventID, r.Status)
	}
	j.buf = j.scenario.partOf(id).reply(j.buf[:0], id)
	j.checkBody(id, body)
	j.count(id, r.Attempt, at)
}

// eventID is the ID of event id in headers.
func eventID(id int) string { return "e" + strconv.Itoa(id) }

// first returns the first value of a header with this exact spelling.
func first(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (j *verifier) checkHead(id int, m *nats.Msg) {
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

// checkBody compares the body with the content of buf.
func (j *verifier) checkBody(id int, body []byte) {
	if !bytes.Equal(body, j.buf) {
		j.fault("event %d: the reply is %.80q (%d bytes) and must be %.80q (%d bytes)", id, body, len(body), j.buf, len(j.buf))
	}
}

// count counts a reply. A reply of the same attempt or an earlier one is a duplicate: only a redelivery may cause a
// second reply.
func (j *verifier) count(id, attempt int, at time.Time) {
	j.last = at
	attempt = min(max(attempt, 0), 255)
	switch before := j.attempts[id]; {
	case attempt < 1:
		j.fault("event %d: attempt %d", id, attempt)
	case before == 0:
		j.attempts[id] = uint8(attempt)
		j.answered++
		if j.replied != nil {
			j.replied(id, at)
		}
		if j.answered == j.events {
			close(j.all)
		}
	case attempt > int(before):
		j.attempts[id] = uint8(attempt)
		j.again++
	default:
		j.fault("event %d: two replies of attempt %d, though it was not delivered again", id, attempt)
	}
}

// fault records an error. The caller holds the lock.
func (j *verifier) fault(format string, args ...any) {
	if len(j.faults) < maxFaults {
		j.faults = append(j.faults, fmt.Sprintf(format, args...))
	} else {
		j.more++
	}
}

// note does what fault does, for callers that do not hold the lock.
func (j *verifier) note(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fault(format, args...)
}

func (j *verifier) progress() (answered int, last time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.answered, j.last
}

// verdict returns an error when anything was lost, duplicated or wrong. Then there is no report.
func (j *verifier) verdict() error {
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
