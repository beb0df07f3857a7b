package queue

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/sources"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// States of a source that no process tells. The others are those of sources.State.
const (
	stateNew     = "starts"     // no process has looked at it yet
	stateUnread  = "no process" // none answers
	stateRemoved = "removed"    // the worker has it no more; its consumer stays for a while
)

const (
	stateReads    = string(sources.Reads)
	statePaused   = string(sources.Paused)
	stateBacksOff = string(sources.BacksOff)
	stateFailing  = string(sources.Failing)
	stateNoStream = string(sources.NoStream)
)

// worse are the states of a source by how bad they are: the worst of all processes is shown.
var worse = [...]string{stateUnread, stateReads, statePaused, stateBacksOff, stateFailing, stateNoStream}

func badness(state string) int { return slices.Index(worse[:], state) }

// States are all that a source may have.
func States() []string {
	return []string{stateReads, stateBacksOff, statePaused, stateFailing, stateNoStream, stateNew, stateUnread,
		stateRemoved}
}

// Source is a source of a worker, as NATS and all processes know it.
type Source struct {
	Place      string    `json:"-"`
	Worker     string    `json:"worker"` // OWNER/WORKER
	N          int       `json:"n"`      // of its consumer; -1 = it is of core subjects, or has no consumer yet
	Source     string    `json:"source"` // kind and name, such as "kv FLAGS"
	Connection string    `json:"connection,omitempty"`
	Filters    []string  `json:"filters,omitempty"`
	Stream     string    `json:"stream,omitempty"` // as NATS names it; core subjects have none
	Consumer   string    `json:"consumer,omitempty"`
	State      string    `json:"state"`          // that of the process in which it is worst
	Why        string    `json:"why,omitempty"`  // it does not read
	Node       string    `json:"node,omitempty"` // the process that says so, unless all do
	Known      bool      `json:"known"`          // the figures are: they are not of core subjects, nor where NATS does not tell
	Pending    uint64    `json:"pending"`        // messages that wait there
	Unacked    int       `json:"unacked"`        // messages on their way to be events
	Oldest     time.Time `json:"oldest,omitzero"`
	Behind     time.Time `json:"behind,omitzero"` // since when messages have waited there without a break
}

// Bad reports whether somebody should look at the source.
func (s Source) Bad() bool { return sources.State(s.State).Fails() }

// Calm reports whether the source does what it should, or has ended.
func (s Source) Calm() bool { return s.State == stateReads || s.State == stateRemoved }

// Text is the state in words, with the reason.
func (s Source) Text() string {
	text := s.State
	if s.Why != "" {
		text += ": " + s.Why
	}
	if s.Node != "" {
		text += " (" + s.Node + ")"
	}
	return text
}

// Sources is a part of the list of sources.
type Sources struct {
	List    []Source
	Next    string           // the Place after which the next page begins; "" = the list ends here
	Missing []control.Member // processes that do not answer
}

// ListSources lists at most about limit sources of an owner, or with "" of all, whose Place comes after one, in the
// order of places. With oldest it looks how long messages have waited there.
func ListSources(ctx context.Context, c *control.Client, owner, after string, limit int, oldest bool) (p Sources,
	err error) {
	stored, err := control.Ask(ctx, c, control.SourcesList, control.ListSources{Oldest: oldest,
		ListWorkers: control.ListWorkers{Owner: owner, After: after, Limit: limit}})
	if err != nil {
		return p, err
	}
	all, missing, err := control.AskSourcesHere(ctx, c, control.AskSources{Owner: owner, After: after,
		Through: stored.Next, Limit: maxHere})
	// Without a token of its own a fleet tells nobody: what NATS knows is listed nevertheless.
	var is *control.Error
	if off := errors.As(err, &is) && is.Code == http.StatusForbidden; err != nil && !off &&
		!errors.Is(err, nats.ErrNoResponders) {
		return p, err
	}
	p.Missing, p.Next = missing, stored.Next
	for _, here := range all { // one that could not tell all ends the page
		if here.Next != "" && (p.Next == "" || here.Next < p.Next) {
			p.Next = here.Next
		}
	}
	p.List = merge(stored.Sources, all, p.Next)
	return p, nil
}

// maxHere is how many sources a process tells at once.
const maxHere = 1000

// merge puts together what NATS knows and what processes say, up to a place.
func merge(stored []control.SourceState, all []control.SourcesHere, through string) (list []Source) {
	by := map[string]*Source{}
	for i := range stored {
		s := ofStored(&stored[i], len(all) > 0)
		by[s.Place] = &s
	}
	for _, here := range all {
		for _, one := range here.Sources {
			s := by[one.Place]
			if s == nil {
				s = &Source{Place: one.Place, Worker: one.Worker, N: one.N, State: stateUnread}
				by[one.Place] = s
			}
			s.add(one, here.Node, len(all) > 1)
		}
	}
	for _, s := range by {
		if through == "" || s.Place <= through {
			list = append(list, *s)
		}
	}
	slices.SortFunc(list, func(a, b Source) int { return strings.Compare(a.Place, b.Place) })
	return list
}

// ofStored is what NATS knows of a source.
func ofStored(s *control.SourceState, answered bool) Source {
	one := Source{Place: s.Consumer, Worker: s.Worker, N: s.N, Source: workers.SourceOf(s.Stream).Name(),
		Connection: s.Connection, Filters: s.Filters, Stream: s.Stream, Consumer: s.Consumer, Known: s.Problem == "",
		Pending: s.Pending, Unacked: s.Unacked, Oldest: s.Oldest, State: stateUnread}
	switch {
	case s.Removed:
		one.State = stateRemoved
	case s.NoStream:
		one.State = stateNoStream
	case answered:
		one.State = stateNew
	}
	if s.Problem != "" && !s.NoStream {
		one.Why = s.Problem
	}
	return one
}

// add adds what a process says. several says that others say something too.
func (s *Source) add(one control.SourceHere, node string, several bool) {
	s.Source, s.Connection, s.Filters = one.Source, one.Connection, one.Filters
	if s.Behind.IsZero() || !one.Behind.IsZero() && one.Behind.Before(s.Behind) {
		s.Behind = one.Behind
	}
	if badness(one.State) <= badness(s.State) {
		return
	}
	s.State, s.Why, s.Node = one.State, one.Why, ""
	if several && one.State != stateReads && one.State != statePaused {
		s.Node = node
	}
	if s.State == stateNoStream {
		s.Why = "" // the state says it
	}
}
