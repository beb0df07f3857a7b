package tail

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// Types of the messages of a feed.
const (
	TypeLog     = "log"
	TypeEvent   = "event"
	TypeLeftOut = "left-out"
)

// maxText is the longest text, stack or message of an entry, in bytes.
const maxText = 4096

// Entry is one message of a feed: a log line, an ended attempt of an event, or how much was left out. Owner, worker,
// times and counts are the fleet's; text, stack, message and event ID are the owner's or its publishers'.
type Entry struct {
	Type    string    `json:"type"` // TypeLog, TypeEvent or TypeLeftOut
	Node    string    `json:"node"` // process
	Time    time.Time `json:"time"`
	Owner   string    `json:"owner"`
	Worker  string    `json:"worker,omitempty"`
	Version string    `json:"version,omitempty"`
	EventID string    `json:"eventId,omitempty"`
	Attempt int       `json:"attempt,omitempty"`

	// Of a log line.
	Level string `json:"level,omitempty"`
	Text  string `json:"text,omitempty"`
	Stack string `json:"stack,omitempty"`

	// Of an ended attempt.
	Kind       string  `json:"kind,omitempty"`
	Outcome    string  `json:"outcome,omitempty"`
	Reason     string  `json:"reason,omitempty"`
	Message    string  `json:"message,omitempty"`
	Status     int     `json:"status,omitempty"`     // of the response to a fetch event
	DurationMs float64 `json:"durationMs,omitempty"` // since a thread took it
	CPUMs      float64 `json:"cpuMs,omitempty"`
	Batch      int     `json:"batch,omitempty"` // how many events the attempt had, whose times these are; 0 = it was no batch

	Cut bool `json:"cut,omitempty"` // text, stack or message has more

	// Of what was left out since the last such message.
	Limited    uint64 `json:"limited,omitempty"`    // chosen, and beyond the rate
	Unfiltered uint64 `json:"unfiltered,omitempty"` // not compared with grep, because there were too many at once
}

// ofLine makes the entry of a log line.
func ofLine(l *events.LogLine) *Entry {
	e := &Entry{
		Type: TypeLog, Time: l.Time, Owner: l.Owner, Worker: l.Worker, Version: l.Version, EventID: l.EventID,
		Attempt: l.Attempt,
		Level:   l.Level, Text: l.Text, Stack: l.Stack,
	}
	e.cut(&e.Text)
	e.cut(&e.Stack)
	return e
}

// ofReport makes the entries of an ended attempt, one for each of its events. There are none of a report without an
// end, and of an attempt that did not begin and runs later.
func ofReport(r *lifecycle.Report) []*Entry {
	a, end := r.Attempt, r.End
	if end == nil || a.Event == nil || a.Worker == nil || end.NotRun() {
		return nil
	}
	if a.Batch == nil {
		return []*Entry{ofEvent(r, a.Event, a.Number, end)}
	}
	list := make([]*Entry, len(a.Batch))
	for i, e := range a.Batch {
		one, _ := end.Of(i)
		list[i] = ofEvent(r, e, max(1, e.Attempt), &one)
		list[i].Batch = len(a.Batch)
	}
	return list
}

// ofEvent makes the entry of an event that a run had.
func ofEvent(r *lifecycle.Report, of *lifecycle.Delivery, attempt int, end *lifecycle.End) *Entry {
	a := r.Attempt
	now := time.Now()
	e := &Entry{
		Type: TypeEvent, Time: now, Owner: of.Owner, Worker: of.Worker, Version: a.Worker.Version, EventID: of.ID,
		Attempt: attempt,
		Kind:    of.Kind.String(), Outcome: Outcome(end), DurationMs: milliseconds(now.Sub(a.Start)),
		CPUMs: milliseconds(end.CPU),
	}
	if of.Kind == events.Fetch {
		e.Status = int(a.Status)
		if r.Reply != nil {
			e.Status = r.Reply.Status
		}
	}
	switch f := end.Failure; {
	case f != nil:
		e.Reason, e.Message = string(f.Reason), f.Message
		if e.Status == 0 && of.Kind == events.Fetch {
			e.Status = f.Reason.Status()
		}
		e.cut(&e.Message)
	case end.Broken != nil:
		e.Reason, e.Message = string(end.Broken.Reason), end.Broken.Message
		e.cut(&e.Message)
	}
	return e
}

// Outcome is how an attempt ended, in a word.
func Outcome(end *lifecycle.End) string {
	switch {
	case end.Cancelled():
		return OutcomeCancelled
	case end.Failure != nil:
		return OutcomeFailed
	case end.Broken != nil:
		return OutcomeBroken
	case end.Interrupted:
		return OutcomeInterrupted
	case end.Retry:
		return OutcomeRetry
	}
	return OutcomeOK
}

// Outcomes are the values of Outcome.
func Outcomes() []string { return slices.Clone(outcomes) }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// cut shortens a text that is too long. It copies it, so that the rest is not kept in memory.
func (e *Entry) cut(s *string) {
	if len(*s) <= maxText {
		return
	}
	n := maxText
	for n > 0 && !utf8.RuneStart((*s)[n]) {
		n--
	}
	*s, e.Cut = strings.Clone((*s)[:n]), true
}

// size is about what e holds in memory, in bytes.
func (e *Entry) size() int64 {
	return int64(512 + len(e.Text) + len(e.Stack) + len(e.Message) + len(e.EventID))
}
