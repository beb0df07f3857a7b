package sources

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// State is what becomes of the messages of a source.
type State string

// States of a source in a process. A source that backs off asks again after at most maxBackoff, and so does one that
// is paused or fails.
const (
	Reads    State = "reads"
	BacksOff State = "backs off" // its owner has its share of the stream of events, or nothing is stored now
	Paused   State = "paused"    // its worker or its owner is
	Failing  State = "failing"   // Why says it
	NoStream State = "no stream" // its stream, bucket or object store is not there
)

// Fails reports whether somebody should look at a source in this state.
func (s State) Fails() bool { return s == Failing || s == NoStream }

// States are all of them.
var States = [...]State{Reads, BacksOff, Paused, Failing, NoStream}

// condition is the state of a feed. The zero condition is that it reads.
type condition struct {
	state State
	why   string
}

// waiting is what a feed knows of messages that wait at its source. The feed's mu must be held.
type waiting struct {
	pending uint64
	behind  time.Time // since when there has always been one; zero = there is none
}

// wait notes how many messages wait.
func (w *waiting) wait(pending uint64, now time.Time) {
	switch w.pending = pending; {
	case pending == 0:
		w.behind = time.Time{}
	case w.behind.IsZero():
		w.behind = now
	}
}

// FarBehind is for how long messages wait at a source without a break, before it counts as far behind.
const FarBehind = 10 * time.Minute

// Status is what a process knows of a source.
type Status struct {
	Owner, Worker string
	N             int // of its consumer; -1 = it is of core subjects, or has no consumer yet
	Source        workers.Source
	State         State
	Why           string    // it does not read; "" = State says it
	Pending       uint64    // messages that waited at the source when the process last heard of it
	Behind        time.Time // since when messages have waited there without a break, as the process knows
}

// Place is where the source is in a list: that of its consumer, if it has one.
func (s Status) Place() string {
	r := Record{Owner: s.Owner, Worker: s.Worker, N: max(0, s.N)}
	if s.N >= 0 {
		return r.Consumer()
	}
	return strings.TrimSuffix(r.Consumer(), "-0") + " " + s.Source.String()
}

// Fails reports whether somebody should look at the source.
func (s Status) Fails() bool { return s.State.Fails() }

// IsFarBehind reports whether messages have waited for longer than FarBehind. A source that fails or is paused is not
// behind: its state says why they wait.
func (s Status) IsFarBehind(now time.Time) bool {
	return !s.Fails() && s.State != Paused && !s.Behind.IsZero() && now.Sub(s.Behind) > FarBehind
}

var errNoStream = errors.New(notThere)

// unread is the status of a source that cannot be read. key is that of its record, or another one if it has none.
func unread(w want, key string, err error) Status {
	s := Status{Owner: w.owner, Worker: w.worker, N: -1, Source: w.source, State: Failing, Why: err.Error()}
	if n, err := strconv.Atoi(key[strings.LastIndexByte(key, '.')+1:]); err == nil && !strings.Contains(key, " ") {
		s.N = n
	}
	if errors.Is(err, errNoStream) || errors.Is(err, jetstream.ErrStreamNotFound) {
		s.State = NoStream
	}
	return s
}

// known is what the process knows of the source of a feed.
func (f *feed) known() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Status{f.rec.Owner, f.rec.Worker, f.rec.N, f.source, cmp.Or(f.state, Reads), f.why, f.pending, f.behind}
	if f.source.Subject != "" {
		s.N = -1 // and its messages are stored while the worker is paused
	} else if f.isPaused() {
		s.State, s.Why = Paused, "" // a request from before may still bring some
	}
	return s
}

// all is what the process knows of the sources of an owner, or with "" of all, in no order.
func (s *Sources) all(owner string) (list []Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, f := range s.feeds {
		if owner != "" && owner != f.rec.Owner {
			continue
		}
		one := f.known()
		if ill, is := s.ill[key]; is {
			one.State, one.Why = ill.State, ill.Why
		}
		list = append(list, one)
	}
	for key, ill := range s.ill {
		if s.feeds[key] == nil && (owner == "" || owner == ill.Owner) {
			list = append(list, ill)
		}
	}
	return list
}

// List returns what the process knows of the sources of an owner, or with "" of all: at most limit of those whose Place
// comes after one place and, unless through is "", not after another one, in the order of places. more reports whether
// there are more. It may be called from any goroutine.
func (s *Sources) List(owner, after, through string, limit int) (list []Status, more bool) {
	list = slices.DeleteFunc(s.all(owner), func(one Status) bool {
		at := one.Place()
		return at <= after || through != "" && at > through
	})
	slices.SortFunc(list, func(a, b Status) int { return strings.Compare(a.Place(), b.Place()) })
	if more = len(list) > limit; more {
		list = list[:limit]
	}
	return list, more
}

// Summary counts the sources of a process. It has no names: anybody in the fleet's account may ask for it.
type Summary struct {
	Sources int `json:"sources"` // of active versions
	Failing int `json:"failing"` // of these, those that fail or whose stream is not there
	Behind  int `json:"behind"`  // of these, those that are far behind, and neither fail nor are paused
}

// Summary counts all sources of the process, or is nil if it has none. It may be called from any goroutine.
func (s *Sources) Summary(now time.Time) *Summary {
	var sum Summary
	for _, one := range s.all("") {
		sum.Sources++
		switch {
		case one.Fails():
			sum.Failing++
		case one.IsFarBehind(now):
			sum.Behind++
		}
	}
	if sum.Sources == 0 {
		return nil
	}
	return &sum
}
