package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/sources"
)

// Endpoints about sources.
var (
	SourcesList = Endpoint[ListSources, SourceList]{
		Name:  "sources.list",
		Doc:   "Lists the consumers of the sources of workers, and how far they are.",
		Owner: func(q *ListSources) *string { return &q.Owner },
		// it tells names of streams and subjects outside of the fleet
		Guarded: true,
		handle:  (*Server).listSources,
	}
	SourcesActive = Endpoint[AskSources, SourcesHere]{
		Name:    "sources.active",
		Doc:     "Returns what sources do in a process.",
		Owner:   func(q *AskSources) *string { return &q.Owner },
		Each:    true,
		Guarded: true,
		handle:  (*Server).sourcesHere,
	}
	SourcesReset = Endpoint[ResetSources, ResetSourceList]{
		Name:    "sources.reset",
		Doc:     "Has sources of a worker begin at another message.",
		Worker:  func(q *ResetSources) *string { return &q.Worker },
		Guarded: true,
		Audit:   true,
		handle:  (*Server).resetSources,
	}
)

// SourceState is a source of a stream, a bucket or an object store.
type SourceState struct {
	Worker     string    `json:"worker"` // OWNER/WORKER
	N          int       `json:"n"`
	Connection string    `json:"connection,omitempty"`
	Stream     string    `json:"stream"`
	Filters    []string  `json:"filters,omitempty"`
	Consumer   string    `json:"consumer"`
	Pending    uint64    `json:"pending"`         // messages that wait there
	Unacked    int       `json:"unacked"`         // messages on their way to be events
	Oldest     time.Time `json:"oldest,omitzero"` // when the first that waits was stored, if it was asked for and is known
	Removed    bool      `json:"removed,omitempty"`
	Problem    string    `json:"problem,omitempty"`  // why Pending and Unacked are not known
	NoStream   bool      `json:"noStream,omitempty"` // the problem is that the stream is not there
}

func sourceStates(list []sources.Progress) []SourceState {
	states := make([]SourceState, len(list))
	for i, s := range list {
		states[i] = SourceState{s.Owner + "/" + s.Worker, s.N, s.Connection, s.Stream, s.Filters, s.Consumer(), s.Pending,
			s.Unacked, s.Oldest, !s.Removed.IsZero(), s.Problem, s.NoStream}
	}
	slices.SortFunc(states, func(a, b SourceState) int { return strings.Compare(a.Consumer, b.Consumer) })
	return states
}

// ListSources chooses consumers of sources.
type ListSources struct {
	asker
	ListWorkers      // After is a consumer
	Oldest      bool `json:"oldest,omitempty"` // say how long messages have waited, where that can be known
}

// SourceList is a page of the list of sources.
type SourceList struct {
	Sources []SourceState `json:"sources"`
	Next    string        `json:"next,omitempty"` // the consumer after which the next page begins; empty at the end
}

func (s *Server) listSources(ctx context.Context, r ListSources) (SourceList, error) {
	limit, err := r.check()
	if err != nil {
		return SourceList{}, err
	}
	store := s.sources()
	store.Paid = s.gate.payer(r.by)
	page, more, err := store.List(ctx, r.Owner, r.After, limit, r.Oldest)
	list := SourceList{Sources: sourceStates(page)}
	if more {
		list.Next = list.Sources[len(list.Sources)-1].Consumer
	}
	return list, err
}

// AskSources asks what sources of an owner, or with "" of all, do in each process.
type AskSources struct {
	Owner   string `json:"owner,omitempty"`
	After   string `json:"after,omitempty"`   // only those whose Place comes after it
	Through string `json:"through,omitempty"` // only those whose Place does not come after it
	Limit   int    `json:"limit,omitempty"`
}

// SourceHere is what a process knows of a source of an active version.
type SourceHere struct {
	Place      string    `json:"place"`  // in the order of lists: its consumer, if it has one
	Worker     string    `json:"worker"` // OWNER/WORKER
	N          int       `json:"n"`      // -1 = it is of core subjects, or has no consumer yet
	Connection string    `json:"connection,omitempty"`
	Source     string    `json:"source"` // kind and name, such as "kv FLAGS"
	Filters    []string  `json:"filters,omitempty"`
	State      string    `json:"state"`           // reads, backs off, paused, failing or no stream
	Why        string    `json:"why,omitempty"`   // it does not read
	Pending    uint64    `json:"pending"`         // messages that waited there when the process last heard of it
	Behind     time.Time `json:"behind,omitzero"` // since when messages have waited there without a break
}

// SourcesHere are those of one process, in the order of their places.
type SourcesHere struct {
	Member
	Sources []SourceHere `json:"sources"`
	Next    string       `json:"next,omitempty"` // the Place after which the next page begins; empty at the end

	Processes []Member `json:"processes"` // as in the answer of flow
	Left      []string `json:"left,omitempty"`
}

func (h SourcesHere) from() (self Member, known []Member, left []string) {
	return h.Member, h.Processes, h.Left
}

// sourcesHere answers for this process.
func (s *Server) sourcesHere(_ context.Context, r AskSources) (SourcesHere, error) {
	limit, err := ListWorkers{Owner: r.Owner, Limit: r.Limit}.check()
	if err != nil {
		return SourcesHere{}, err
	}
	a, size := SourcesHere{Sources: []SourceHere{}}, 0
	list, more := s.cfg.Process.Sources(r.Owner, r.After, r.Through, limit)
	for i := range list {
		is := &list[i]
		one := SourceHere{is.Place(), is.Owner + "/" + is.Worker, is.N, is.Source.Connection, is.Source.Name(),
			is.Source.Filters(), string(is.State), is.Why, is.Pending, is.Behind}
		text, err := json.Marshal(one)
		if err != nil {
			return a, err
		}
		if size += len(text) + 1; size > s.answerRoom() && i > 0 {
			more = true
			break
		}
		a.Sources = append(a.Sources, one)
	}
	if more {
		a.Next = a.Sources[len(a.Sources)-1].Place
	}
	a.Member, a.Processes, a.Left = s.cfg.Process.Members()
	return a, nil
}

// AskSourcesHere asks all processes what sources do there, and waits a second at most for those that another has named.
// missing are processes that did not answer. nats.ErrNoResponders means that no process answers.
func AskSourcesHere(ctx context.Context, c *Client, r AskSources) (all []SourcesHere, missing []Member, err error) {
	return askEach[SourcesHere](ctx, c, SourcesActive.Name, r, time.Second)
}

// ResetSources has sources of a worker begin at another message.
type ResetSources struct {
	WorkerName
	To     string `json:"to"`     // new, all, a sequence, or a time in RFC 3339
	N      *int   `json:"n"`      // only the source with this number
	DryRun bool   `json:"dryRun"` // only count
}

// ResetSourceList are the sources that were reset. Pending is how many messages come.
type ResetSourceList struct {
	Sources []SourceState `json:"sources"`
	DryRun  bool          `json:"dryRun,omitempty"`
	to      string
}

// recorded is what the audit stream tells of it.
func (r ResetSourceList) recorded() any {
	if r.DryRun || len(r.Sources) == 0 {
		return nil
	}
	pending := uint64(0)
	for _, s := range r.Sources {
		pending += s.Pending
	}
	return map[string]any{"worker": r.Sources[0].Worker, "to": r.to, "messages": pending}
}

func (s *Server) resetSources(ctx context.Context, r ResetSources) (ResetSourceList, error) {
	owner, name, err := r.parse()
	if err != nil {
		return ResetSourceList{}, err
	}
	to, err := sources.ParseStart(r.To)
	if err != nil {
		return ResetSourceList{}, wrongField("to", " %v", err)
	}
	n := -1
	if r.N != nil {
		n = *r.N
	}
	done, err := s.sources().Reset(ctx, owner, name, n, to, r.DryRun)
	if errors.Is(err, sources.ErrNoSource) {
		err = &Error{Code: http.StatusNotFound, Text: err.Error()}
	}
	return ResetSourceList{sourceStates(done), r.DryRun, r.To}, err
}

// sources returns the store of sources. A command has only the connection of the fleet.
func (s *Server) sources() sources.Store {
	store := sources.Store{Conns: s.cfg.Sources}
	if conn, err := sources.NewConn(s.nc, ""); err == nil && store.Conns == nil {
		store.Conns = sources.Conns{"": conn}
	}
	return store
}
