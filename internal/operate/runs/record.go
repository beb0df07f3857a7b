package runs

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
	"github.com/pinwheel-run/pinwheel/internal/operate/tail"
)

const (
	// MaxLines is how many bytes of log lines a record has.
	MaxLines = 64 << 10
	// maxMessage is the longest message of a failure in a record, and maxEvent the longest id, in bytes.
	maxMessage, maxEvent = 4096, 1024
)

// Record is one ended attempt of an event. Owner, worker, version, outcome, times and figures are the fleet's. Event,
// message and lines are the text of the owner or of its publishers.
type Record struct {
	Seq     uint64 `json:"id"`      // number in the stream; set by the reader
	Owner   string `json:"owner"`   // set by the reader, from the subject, as Worker and Outcome
	Worker  string `json:"worker"`  //
	Outcome string `json:"outcome"` // one of tail.Outcomes
	Event   string `json:"event"`   // id
	Kind    string `json:"kind"`
	Attempt int    `json:"attempt"`
	Version string `json:"version"`
	Node    string `json:"node"` // process

	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Status  int    `json:"status,omitempty"` // of the response to a fetch event

	Stored  time.Time `json:"stored,omitzero"`  // when the stream stored the event; zero: it was a direct one
	Started time.Time `json:"started"`          // when a thread took it
	Replied time.Time `json:"replied,omitzero"` // when the response was ready, if waitUntil went on after it
	Ended   time.Time `json:"ended"`

	CPUMs    float64 `json:"cpuMs"`
	BytesIn  int64   `json:"bytesIn"`  // of the body
	BytesOut int64   `json:"bytesOut"` // of the body of the reply, without what streamed after its head
	// Batch is how many events the attempt had, whose times and CPU these are; 0 = it was no batch.
	Batch   int    `json:"batch,omitempty"`
	Replays int    `json:"replays,omitempty"` // how often the event was a dead letter and was replayed
	TraceID string `json:"traceId,omitempty"`

	Lines     []Line `json:"lines,omitempty"`
	LinesLost int    `json:"linesLost,omitempty"` // further lines that were not kept
}

// Line is a line of the output of an attempt.
type Line struct {
	Time  time.Time `json:"time"`
	Level string    `json:"level"`
	Text  string    `json:"text"`
	Stack string    `json:"stack,omitempty"`
}

// of makes the record of an event that an attempt had.
func of(r *lifecycle.Report, e *lifecycle.Delivery, attempt int, end *lifecycle.End, now time.Time) *Record {
	a := r.Attempt
	rec := &Record{
		Owner: e.Owner, Worker: e.Worker, Outcome: tail.Outcome(end), Event: cut(e.ID, maxEvent), Kind: e.Kind.String(),
		Attempt: attempt, Version: a.Worker.Version,
		Stored: e.Stored, Started: a.Start, Ended: now,
		CPUMs: float64(end.CPU.Microseconds()) / 1000, BytesIn: int64(len(e.Body)), BytesOut: int64(a.Sent),
		Batch: len(a.Batch),
	}
	if e.Direct() {
		rec.Stored = time.Time{}
	}
	if a.Replied > 0 && r.Reply == nil { // the reply came before the end
		rec.Replied = a.Start.Add(a.Replied)
	}
	if e.Parts != nil {
		rec.BytesIn = e.Parts.Size
	}
	if r.Reply != nil {
		rec.BytesOut = int64(len(r.Reply.Body) + r.Reply.Dropped)
	}
	if e.Kind == events.Fetch {
		if rec.Status = int(a.Status); r.Reply != nil {
			rec.Status = r.Reply.Status
		}
	}
	failure := end.Failure
	if failure == nil {
		failure = end.Broken
	}
	if failure != nil {
		rec.Reason, rec.Message = string(failure.Reason), cut(failure.Message, maxMessage)
		if rec.Status == 0 && e.Kind == events.Fetch {
			rec.Status = failure.Reason.Status()
		}
	}
	if e.Header != nil {
		rec.Replays = e.Replays()
	}
	if e.Trace != nil && e.Trace.Sampled {
		rec.TraceID = hex.EncodeToString(e.Trace.TraceID[:])
	}
	return rec
}

// ofCancelled makes the record of an event that was cancelled while it waited: it has no version, and begins and ends
// at the same time.
func ofCancelled(e *lifecycle.Delivery, now time.Time) *Record {
	f := events.Cancelled()
	rec := &Record{
		Owner: e.Owner, Worker: e.Worker, Outcome: tail.OutcomeCancelled, Event: cut(e.ID, maxEvent),
		Kind: e.Kind.String(), Attempt: max(1, e.Attempt), Stored: e.Stored, Started: now, Ended: now,
		BytesIn: int64(len(e.Body)), Reason: string(f.Reason), Message: f.Message,
	}
	if e.Kind == events.Fetch {
		rec.Status = f.Reason.Status()
	}
	if e.Header != nil {
		rec.Replays = e.Replays()
	}
	return rec
}

// cut shortens a text that is too long. It copies it, so that the rest is not kept in memory.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return strings.Clone(s[:most])
}

// size is about how many bytes a record takes in memory and as JSON.
func (r *Record) size() int {
	n := 512 + len(r.Event) + len(r.Message)
	for i := range r.Lines {
		n += r.Lines[i].size()
	}
	return n
}

// lineOverhead is what a line takes beside its texts.
const lineOverhead = 80

func (l *Line) size() int { return len(l.Level) + len(l.Text) + len(l.Stack) + lineOverhead }

// subject is where r is stored. Its tokens are what lists filter by.
func (r *Record) subject(s events.Subjects) string {
	return s.Runs(r.Owner, r.Worker, number(r.Version), r.Outcome, bucket(r.Event))
}

// number is the number of a version.
func number(version string) string {
	n, _, _ := strings.Cut(version, "-")
	if !events.ValidName(n) {
		return "~"
	}
	return n
}

// bucket is the token of an event: one of 256, so that a stream of many events has few subjects. Publishers choose ids,
// and so can have all of theirs in one.
func bucket(event string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(event))
	return hex.EncodeToString([]byte{byte(h.Sum32() ^ h.Sum32()>>16)})
}

// parse reads a stored record. Owner, worker and outcome come from the subject, which only the fleet may publish to.
func parse(m *stored.Message) (*Record, error) {
	tokens := strings.Split(m.Subject, ".")
	if len(tokens) != 7 {
		return nil, fmt.Errorf("subject %q is of no record", m.Subject)
	}
	r := &Record{}
	if err := json.Unmarshal(m.Data, r); err != nil {
		return nil, fmt.Errorf("record %d: %w", m.Sequence, err)
	}
	r.Seq, r.Owner, r.Worker, r.Outcome = m.Sequence, tokens[2], tokens[3], tokens[5]
	return r, nil
}
