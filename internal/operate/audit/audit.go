// Package audit keeps what was changed in a fleet: by whom, from where and when. Processes write what they do for
// requests; commands write what they do themselves.
package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

const (
	// Stream is the name of the stream.
	Stream = "PINWHEEL_AUDIT"
	// StreamOperators is the name of the stream in which the server keeps a copy of the records of operators.
	StreamOperators = "PINWHEEL_AUDIT_OPERATORS"
	// StreamProcesses is the name of the stream with a copy of the records of processes.
	StreamProcesses = "PINWHEEL_AUDIT_PROCESSES"
)

const (
	// age is how long records are kept.
	age = 90 * 24 * time.Hour
	// maxSize is the largest size of the stream, in bytes. When it is full, the oldest records go.
	maxSize = 64 << 20
	// maxOperators is the same for the copies of the records of operators.
	maxOperators = 16 << 20
	// maxProcesses is the same for the copies of the records of processes.
	maxProcesses = 4 << 20
	// maxRecords is how many records are kept of one owner and one source. So an owner displaces only its own.
	maxRecords = 5000
	// maxOfProcesses is the same for the copies of the records of processes: an owner's code can cause some.
	maxOfProcesses = 100
	// maxRecord is the largest record, in bytes.
	maxRecord = 4096
	// patience is how long storing a record may take.
	patience = 5 * time.Second
)

// Sources of a record: who wrote it, and so what its fields are worth.
const (
	OwnerAPI = "door"    // a process, for a request to the owner API. NATS has permitted this owner's subject
	Control  = "control" // a process, for a request to a control endpoint. Who sent it, NATS does not tell
	Process  = "process" // a process, of what it has done by itself
	Command  = "command" // a command of the fleet's user, which wrote to JetStream itself. All fields are what it says
)

// noOwner is the token for changes that are of no single owner. It is never a name.
const noOwner = "~"

// Record is one change.
type Record struct {
	Seq     uint64          `json:"id,omitempty"`   // in the stream; set by List
	Time    time.Time       `json:"time"`           // when NATS stored it; set by List
	Source  string          `json:"source"`         // OwnerAPI, Control, Process or Command; set by List, from the subject
	Owner   string          `json:"owner"`          // whose things were changed; "": of no single owner. Set by List, from the subject
	Action  string          `json:"action"`         // name of the endpoint, or words of the command
	Request json.RawMessage `json:"request"`        // what was asked for, without content of events
	Node    string          `json:"node,omitempty"` // process that did it; machine of a command
	User    string          `json:"user,omitempty"` // NATS user and account of a command, as the server told it
	Claims  string          `json:"claims,omitempty"`
}

// Config configures the stream of a fleet.
type Config struct {
	Prefix   events.Subjects
	Replicas int
	MaxBytes int64 // of the event stream
}

// stream is the stream of a fleet. Neither records nor parts of the stream can be deleted, only all of it.
func (c Config) stream() jetstream.StreamConfig {
	s, replicas := c.Prefix, c.Replicas
	return jetstream.StreamConfig{
		Name: Stream, Description: "What was changed, and by whom", Subjects: []string{subject(s, "*", "*")},
		Retention: jetstream.LimitsPolicy,
		Storage:   jetstream.FileStorage, Replicas: max(1, replicas), MaxAge: age,
		MaxBytes: min(maxSize, max(1<<20, c.MaxBytes/32)), MaxMsgsPerSubject: maxRecords, MaxMsgSize: 2 * maxRecord,
		Discard: jetstream.DiscardOld, DenyDelete: true, DenyPurge: true, AllowDirect: true,
	}
}

// operators is the stream of copies. Any number of owners together can displace records of the first stream. Only
// operators write what is copied here.
func (c Config) operators() jetstream.StreamConfig {
	return c.copies(StreamOperators, "What operators have changed: copies of records", maxOperators, Control, Command)
}

// processes is the stream of copies of what processes did by themselves. It is apart from that of operators: a process
// writes a record when a cell is ended, and code of owners can have that happen again and again.
func (c Config) processes() jetstream.StreamConfig {
	copies := c.copies(StreamProcesses, "What processes did by themselves: copies of records", maxProcesses, Process)
	copies.MaxMsgsPerSubject = maxOfProcesses
	return copies
}

// copies is a stream of copies of the records of these sources.
func (c Config) copies(name, description string, size int64, sources ...string) jetstream.StreamConfig {
	copies := c.stream()
	copies.Name, copies.Description, copies.Subjects = name, description, nil
	copies.MaxBytes = min(size, max(1<<20, c.MaxBytes/(2<<30/size)))
	from := &jetstream.StreamSource{Name: Stream} // one for all, so that copies have the order of the records
	for _, source := range sources {
		from.SubjectTransforms = append(from.SubjectTransforms,
			jetstream.SubjectTransformConfig{Source: subject(c.Prefix, "*", source)})
	}
	copies.Sources = []*jetstream.StreamSource{from}
	return copies
}

// Resources are all resources of this package in JetStream.
func Resources(c Config) []resources.Resource {
	all, operators, processes := c.stream(), c.operators(), c.processes()
	return []resources.Resource{{Stream: &all}, {Stream: &operators}, {Stream: &processes}}
}

// subject is <prefix>.audit.<owner>.<source>.
func subject(s events.Subjects, owner, source string) string {
	return string(s) + ".audit." + owner + "." + source
}

// Log writes and reads the records of a fleet. Several goroutines may use it.
type Log struct {
	js       jetstream.JetStream
	subjects events.Subjects
	create   *Config // of the stream; nil: it is never created
}

// New returns a Log for a program that does not create the stream.
func New(js jetstream.JetStream, s events.Subjects) *Log { return &Log{js: js, subjects: s} }

// Open creates the streams, or updates them to what they should be.
func Open(ctx context.Context, js jetstream.JetStream, c Config, log zerolog.Logger) (*Log, error) {
	for _, r := range Resources(c) {
		if err := (&resources.Reconciler{JS: js, Log: log}).Stream(ctx, *r.Stream); err != nil {
			return nil, fmt.Errorf("stream %s: %w", r.Stream.Name, err)
		}
	}
	return &Log{js, c.Prefix, &c}, nil
}

// ErrNoStream is the error when the fleet has no such stream: no process of this release has run yet.
var ErrNoStream = errors.New("the fleet has no stream " + Stream)

// Write stores a record, and returns when it is stored. It stores it also if ctx has ended: the change is done.
func (l *Log) Write(ctx context.Context, r Record) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	owner := r.Owner
	if !events.ValidName(owner) {
		owner = noOwner
	}
	to := subject(l.subjects, owner, r.Source)
	r.Owner, r.Source = "", ""
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if len(data) > maxRecord {
		r.Request = json.RawMessage(fmt.Sprintf(`{"tooLong":%d}`, len(data)))
		if data, err = json.Marshal(r); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
	}
	_, err = l.js.Publish(ctx, to, data, jetstream.WithExpectStream(Stream), jetstream.WithRetryAttempts(0))
	if missing(err) && l.create != nil { // it was deleted while the process runs
		if err := (&resources.Reconciler{JS: l.js, OnlyMissing: true}).Stream(ctx, l.create.stream()); err != nil {
			return fmt.Errorf("audit: %w", err)
		}
		_, err = l.js.Publish(ctx, to, data, jetstream.WithExpectStream(Stream))
	}
	switch {
	case missing(err):
		return ErrNoStream
	case err != nil:
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

func missing(err error) bool {
	return errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, jetstream.ErrStreamNotFound)
}

// Filter chooses records. Empty fields choose all.
type Filter struct {
	Owner string    // whose things were changed
	Since time.Time // stored then or later
	After uint64    // only those with a greater number
}

// List iterates over records, the oldest first. Records that cannot be read have only what NATS and the subject say. An
// error ends the list.
func (l *Log) List(ctx context.Context, f Filter) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		owner := f.Owner
		if owner == "" {
			owner = "*"
		} else if !events.ValidName(owner) {
			yield(nil, events.CheckName("owner", owner))
			return
		}
		for m, err := range l.messages(ctx, subject(l.subjects, owner, "*"), f.After) {
			if err != nil {
				yield(nil, fmt.Errorf("audit: %w", err))
				return
			}
			if m.Time.Before(f.Since) {
				continue
			}
			if !yield(l.read(m), nil) {
				return
			}
		}
	}
}

// messages iterates over stored records with a number after that: first the copies of those that are no longer in the
// stream of all records, then that stream.
func (l *Log) messages(ctx context.Context, filter string, after uint64) iter.Seq2[*stored.Message, error] {
	return func(yield func(*stored.Message, error) bool) {
		first, err := l.first(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		copies := merged(l.displaced(ctx, StreamOperators, filter, first), l.displaced(ctx, StreamProcesses, filter, first))
		for m, err := range copies {
			if (err != nil || m.Sequence > after) && !yield(m, err) {
				return
			}
		}
		for m, err := range stored.All(ctx, l.js.Conn(), Stream, filter, after+1) {
			if !yield(m, err) {
				return
			}
		}
	}
}

// displaced iterates over those records of a stream of copies whose number in the stream of all records is below first.
func (l *Log) displaced(ctx context.Context, of, filter string, first uint64) iter.Seq2[*stored.Message, error] {
	return func(yield func(*stored.Message, error) bool) {
		for m, err := range stored.All(ctx, l.js.Conn(), of, filter, 1) {
			if missing(err) {
				return // no process of this release has run yet
			}
			if err == nil {
				m.Sequence = original(m.Header)
			}
			if err == nil && m.Sequence >= first || !yield(m, err) {
				return
			}
		}
	}
}

// merged iterates over records of both, in the order of their numbers.
func merged(a, b iter.Seq2[*stored.Message, error]) iter.Seq2[*stored.Message, error] {
	return func(yield func(*stored.Message, error) bool) {
		nextA, stopA := iter.Pull2(a)
		defer stopA()
		nextB, stopB := iter.Pull2(b)
		defer stopB()
		m, err, some := nextA()
		other, wrong, more := nextB()
		for some || more {
			if some && (!more || err != nil || wrong == nil && m.Sequence < other.Sequence) {
				if !yield(m, err) {
					return
				}
				m, err, some = nextA()
				continue
			}
			if !yield(other, wrong) {
				return
			}
			other, wrong, more = nextB()
		}
	}
}

// first returns the number of the first record that the stream of all records still has.
func (l *Log) first(ctx context.Context) (uint64, error) {
	s, err := l.js.Stream(ctx, Stream)
	if err != nil {
		return 0, err
	}
	return s.CachedInfo().State.FirstSeq, nil
}

// original returns the number of a copied record in the stream of all records. The server has written it.
func original(h nats.Header) uint64 {
	fields := strings.Fields(h.Get("Nats-Stream-Source"))
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.ParseUint(fields[1], 10, 64)
	return n
}

// read decodes a record. Time, owner and source come from NATS, not from who wrote the record.
func (l *Log) read(m *stored.Message) *Record {
	r := &Record{}
	if json.Unmarshal(m.Data, r) != nil {
		*r = Record{Action: "?"}
	}
	r.Seq, r.Time, r.Owner, r.Source = m.Sequence, m.Time, "", ""
	parts := bytes.Split([]byte(m.Subject), []byte("."))
	if len(parts) == 4 {
		r.Owner, r.Source = string(parts[2]), string(parts[3])
	}
	if r.Owner == noOwner {
		r.Owner = ""
	}
	return r
}
