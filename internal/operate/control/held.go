package control

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
	"github.com/pinwheel-run/pinwheel/internal/operate/cancels"
)

// AskHeld asks what a process holds of an owner.
type AskHeld struct {
	Owner  string `json:"owner,omitempty"`
	Worker string `json:"worker,omitempty"` // WORKER or OWNER/WORKER
}

// HeldEvent is an event that a process has taken from JetStream. It is in its place there until it has ended.
type HeldEvent struct {
	Ref    string    `json:"ref"` // as in QueuedEvent; of a due event, too, if it came from the stream of schedules
	Worker string    `json:"worker"`
	ID     string    `json:"id"`
	State  string    `json:"state"`          // queued, running, waiting for its next run, or what is being done about it
	Began  time.Time `json:"began,omitzero"` // of the attempt in progress
}

// HeldEvents are those of one process, at most MaxHeldEvents, and how many it has.
type HeldEvents struct {
	Member
	Events []HeldEvent `json:"events"`
	All    int         `json:"all"`

	Processes []Member `json:"processes"` // as in the answer of flow
	Left      []string `json:"left,omitempty"`
}

// MaxHeldEvents is how many events an answer of events.held has at most.
const MaxHeldEvents = 500

func (h HeldEvents) from() (self Member, known []Member, left []string) {
	return h.Member, h.Processes, h.Left
}

// HeldRef is the Ref of an event in a stream. An event that was held has the Ref of a parked one, and one of a source
// that of one in a lane: both name it.
func HeldRef(stream string, seq uint64) string {
	name := map[string]string{events.StreamEvents: inLane, events.StreamParked: isParked}[stream]
	return cmp.Or(name, isDue) + ":" + strconv.FormatUint(seq, 10)
}

// heldEvents answers for this process.
func (s *Server) heldEvents(_ context.Context, r AskHeld) (HeldEvents, error) {
	if err := SplitWorker(&r.Owner, &r.Worker); err != nil {
		return HeldEvents{}, err
	}
	if err := cmp.Or(OwnerName{r.Owner}.check(), CheckName("worker", r.Worker)); err != nil {
		return HeldEvents{}, err
	}
	a := HeldEvents{}
	a.Events, a.All = s.cfg.Process.Held(r.Owner, r.Worker)
	a.Member, a.Processes, a.Left = s.cfg.Process.Members()
	return a, nil
}

// AskHeldEvents asks all processes what they hold of an owner, and waits a second at most for those that another has
// named. missing are processes that did not answer. nats.ErrNoResponders means that no process answers.
func AskHeldEvents(ctx context.Context, c *Client, r AskHeld) (all []HeldEvents, missing []Member, err error) {
	return askEach[HeldEvents](ctx, c, EventsHeld.Name, r, time.Second)
}

// Is reports whether a process holds that event of a list.
func (h HeldEvent) Is(q QueuedEvent) bool {
	_, seq, _ := strings.Cut(q.Ref, ":")
	return h.ID == q.ID && (h.Ref == q.Ref || q.Place == isHeld && h.Ref == isParked+":"+seq ||
		q.Place == inSource && h.Ref == inLane+":"+seq)
}

// CancelEvents chooses events of an owner that are to end, wherever they wait or run: by their names, or as events.list
// chooses them.
type CancelEvents struct {
	ListEvents
	// Names are Refs or IDs, at most cancels.Batch. Then there is no filter.
	Names []string `json:"events,omitempty"`
	// All says that all events of the owner or worker are meant, if there are neither names nor a filter.
	All bool `json:"all,omitempty"`
}

// CancelledEvent is what became of an event.
type CancelledEvent struct {
	Ref     string          `json:"ref,omitempty"`
	ID      string          `json:"id"`
	Worker  string          `json:"worker,omitempty"`
	Outcome cancels.Outcome `json:"outcome"` // cancelled; ended, if it did before; or ending, if its run has not ended yet
}

// CancelledEvents are the events of a request.
type CancelledEvents struct {
	Events    []CancelledEvent `json:"events"`
	Cancelled int              `json:"cancelled"`
	Next      string           `json:"next,omitempty"` // as in EventList
	// Silent are processes that did not answer. What only they may have of these events is ending.
	Silent []string `json:"silent,omitempty"`
}

const (
	// cancelWithin is how long cancelled events may take to end.
	cancelWithin = 8 * time.Second
	// cancelMoves is how often an event is looked for that moves meanwhile.
	cancelMoves = 5
)

// chosen is an event that is to be cancelled.
type chosen struct {
	QueuedEvent
	at cancels.Event
}

// cancelEvents cancels events.
func (s *Server) cancelEvents(ctx context.Context, r CancelEvents) (CancelledEvents, error) {
	answer := CancelledEvents{Events: []CancelledEvent{}}
	places, after, err := r.parse()
	if err != nil {
		return answer, err
	}
	switch {
	case len(r.Names) > cancels.Batch:
		return answer, wrongField("events", " has %d names: at most %d", len(r.Names), cancels.Batch)
	case len(r.Names) > 0 && (r.filters() || r.All || r.After != ""):
		return answer, refused("events are named, and there is a filter: one of both")
	case len(r.Names) == 0 && !r.filters() && !r.All:
		return answer, refused("which events? Name them in events, filter them by place, kind or olderMs, or say all")
	}
	var list []chosen
	if len(r.Names) > 0 {
		list, err = s.findAll(ctx, r)
	} else {
		list, answer.Next, err = s.choose(ctx, r, places, after)
	}
	if err != nil {
		return answer, err
	}
	return answer, s.cancelChosen(ctx, list, &answer)
}

// cancelChosen cancels events, also those that move meanwhile.
func (s *Server) cancelChosen(ctx context.Context, list []chosen, answer *CancelledEvents) error {
	within, stop := context.WithTimeout(ctx, cancelWithin)
	defer stop()
	for try := 0; len(list) > 0; try++ {
		at := make([]cancels.Event, len(list))
		for i, c := range list {
			at[i] = c.at
		}
		outcomes, silent, err := s.cfg.Queue.Cancel(within, at)
		if err != nil {
			return err
		}
		for _, id := range silent {
			if !slices.Contains(answer.Silent, id) {
				answer.Silent = append(answer.Silent, id)
			}
		}
		var moved []chosen
		for i, c := range list {
			if outcomes[i] == cancels.Moved && try < cancelMoves {
				p, m, err := s.findEvent(within, ShowEvent{Owner: c.Owner, Worker: c.Worker, ID: c.ID})
				if err == nil {
					q, _, _ := s.queued(p, m)
					moved = append(moved, chosen{q, cancels.NewEvent(p.stream, m)})
					continue
				}
				outcomes[i] = cancels.Ended
			}
			if outcomes[i] == cancels.Cancelled {
				answer.Cancelled++
			}
			answer.Events = append(answer.Events, CancelledEvent{c.Ref, c.ID, c.Worker, outcomes[i]})
		}
		list = moved
	}
	return nil
}

// findAll finds the events that a request names. One that is not there has ended, or never was, unless it is the only
// one.
func (s *Server) findAll(ctx context.Context, r CancelEvents) (list []chosen, err error) {
	ctx, stop := context.WithTimeout(ctx, findWithin*2/3)
	defer stop()
	named := map[string]bool{}
	for _, name := range r.Names {
		if name == "" || len(name) > events.MaxEventID {
			return nil, wrongField("events", " has a name of %d bytes: they have 1 to %d", len(name), events.MaxEventID)
		}
		p, m, err := s.findEvent(ctx, ShowEvent{Owner: r.Owner, Worker: r.Worker, ID: name})
		if codeOf(err) == http.StatusNotFound && len(r.Names) > 1 {
			continue
		}
		if err != nil {
			return nil, err
		}
		q, _, _ := s.queued(p, m)
		if !named[q.Ref] { // it may be named twice, by its ref and its ID
			named[q.Ref] = true
			list = append(list, chosen{q, cancels.NewEvent(p.stream, m)})
		}
	}
	return list, nil
}

// choose finds the events of one page of a filter.
func (s *Server) choose(ctx context.Context, r CancelEvents, places []queuePlace,
	after uint64) (list []chosen, next string, err error) {
	limit := cancels.Batch
	if r.Limit > 0 {
		limit = min(limit, r.Limit)
	}
	next, err = s.scan(ctx, &r.ListEvents, places, after, limit,
		func(p queuePlace, q *QueuedEvent, m *stored.Message) (bool, error) {
			list = append(list, chosen{*q, cancels.NewEvent(p.stream, m)})
			return true, nil
		})
	return list, next, err
}

// PurgeEvents chooses events of an owner that wait, to be taken out. Those that were stored after the job began stay.
type PurgeEvents struct {
	ListEvents
	DryRun bool `json:"dryRun,omitempty"` // only count
	All    bool `json:"all,omitempty"`    // all that wait are meant, if there is no filter

	asker
}

// purgeEvents starts a job that purges events. Its counts are those of a job of dead letters: total events were found,
// done are purged, and failed had begun or moved meanwhile.
func (js *jobs) purgeEvents(_ context.Context, r PurgeEvents) (Job, error) {
	by := r.by
	places, _, err := r.parse()
	switch {
	case err != nil:
		return Job{}, err
	case r.After != "" || r.Limit != 0:
		return Job{}, refused("a purge has no page: after and limit are for events.list")
	case !r.filters() && !r.All:
		return Job{}, refused("which events? Filter them by place, kind or olderMs, or say all")
	}
	p := cancels.Purge{DryRun: r.DryRun}
	for _, place := range places {
		p.Places = append(p.Places, cancels.Place{Stream: place.stream,
			Filter: place.filter(js.ops.subjects, r.Owner, cmp.Or(r.Worker, "*"))})
	}
	before := js.queue.Process.Now().Add(-time.Duration(r.Older) * time.Millisecond)
	p.Chooses = func(i int, m *stored.Message) bool {
		q, _, ok := js.ops.queued(places[i], m)
		return ok && r.chooses(&q, before) && !q.Stored.After(before)
	}
	return js.start("purge-events", by, r.DryRun, func(ctx context.Context, j *job,
		wait func(context.Context) error) (deadletter.Counts, error) {
		counts := func(c cancels.Counts) deadletter.Counts {
			return deadletter.Counts{Total: c.Found, Done: c.Purged, Failed: c.Left}
		}
		p.Wait = func(ctx context.Context, c cancels.Counts) error {
			j.counts(counts(c))
			return wait(ctx)
		}
		c, err := js.queue.Purge(ctx, p)
		return counts(c), err
	})
}
