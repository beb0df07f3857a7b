package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// Event is an event that has not ended, with what a process does with it.
type Event struct {
	control.QueuedEvent
	State string    `json:"state,omitempty"` // of the process; "" = none has the event
	Node  string    `json:"node,omitempty"`
	Began time.Time `json:"began,omitzero"`
}

// Where is the state of the event in the process that has it, or the place where it is stored.
func (e Event) Where() string { return cmp.Or(e.State, e.Place) }

// String says where the event is, which process has it and since when it runs.
func (e Event) String() string {
	switch {
	case e.Node == "":
		return e.Place
	case e.Began.IsZero():
		return fmt.Sprintf("%s on %s", e.State, e.Node)
	}
	return fmt.Sprintf("%s on %s since %s", e.State, e.Node, e.Began.Local().Format("2006-01-02 15:04:05Z07:00"))
}

// Held is what processes hold of an owner, by ID.
type Held map[string][]heldOne

type heldOne struct {
	control.HeldEvent
	node string
}

// AskHeld asks all processes. Where none answers, nothing is held.
func AskHeld(ctx context.Context, c *control.Client, r control.AskHeld) (Held, error) {
	all, _, err := control.AskHeldEvents(ctx, c, r)
	if err != nil && !errors.Is(err, nats.ErrNoResponders) {
		return nil, err
	}
	held := Held{}
	for _, p := range all {
		for _, h := range p.Events {
			held[h.ID] = append(held[h.ID], heldOne{h, p.Node})
		}
	}
	return held, nil
}

// Of adds to an event what a process does with it.
func (h Held) Of(q control.QueuedEvent) Event {
	for _, one := range h[q.ID] {
		if one.Is(q) {
			return Event{q, one.State, one.node, one.Began}
		}
	}
	return Event{QueuedEvent: q}
}

// Show returns an event of an owner that has not ended, found by its Ref or its ID.
func Show(ctx context.Context, c *control.Client, r control.ShowEvent) (Event, error) {
	q, err := control.Ask(ctx, c, control.EventsShow, r)
	if err != nil {
		return Event{}, err
	}
	held, err := AskHeld(ctx, c, control.AskHeld{Owner: q.Owner, Worker: q.Worker})
	return held.Of(q), err
}

// Page is a part of the list of events that have not ended.
type Page struct {
	Events []Event
	Next   string // the Ref after which the next page begins; "" = the list ends here
}

// List returns at most r.Limit events that r chooses. It asks again until the page is full, or until a time: then the
// page has fewer, and Next.
func List(ctx context.Context, c *control.Client, r control.ListEvents, until time.Time) (p Page, err error) {
	held, err := AskHeld(ctx, c, control.AskHeld{Owner: r.Owner, Worker: r.Worker})
	if err != nil {
		return p, err
	}
	for most := r.Limit; ; {
		r.Limit = most - len(p.Events)
		part, err := control.Ask(ctx, c, control.EventsList, r)
		if err != nil {
			return p, err
		}
		for _, q := range part.Events {
			p.Events = append(p.Events, held.Of(q))
		}
		p.Next = part.Next
		if r.After = part.Next; r.After == "" || len(p.Events) >= most || time.Now().After(until) {
			return p, nil
		}
	}
}
