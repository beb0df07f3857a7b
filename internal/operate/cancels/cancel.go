package cancels

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/cancel"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// Event is a stored event that has not ended.
type Event struct {
	Stream  string
	Message *stored.Message
}

// NewEvent is the event of a message, which loses its body: nobody who is answered for an event needs that.
func NewEvent(stream string, m *stored.Message) Event {
	m.Block, m.Data = nil, nil
	return Event{stream, m}
}

func (e *Event) id() cancel.ID {
	return cancel.ID{Stream: e.Stream, Seq: e.Message.Sequence, Stored: e.Message.Time.UnixNano()}
}

// Outcome is what became of an event that was to be cancelled.
type Outcome string

// The outcomes.
const (
	Cancelled Outcome = "cancelled" // it never runs again
	Ended     Outcome = "ended"     // it ended before
	Moved     Outcome = "moved"     // it is in another place now, under another number
	Running   Outcome = "running"   // its run has begun: only Take leaves that alone
	Ending    Outcome = "ending"    // it has not ended yet, or a process did not answer that may have it: cancel it again
)

// Bounds of one cancellation.
const (
	again    = 10 * time.Millisecond
	againMax = time.Second
	// waitingRounds is how often processes are asked about a batch of events that wait. What is pending then is left.
	waitingRounds = 8
)

// taking is the state of one call of Cancel or Take.
type taking struct {
	asker
	mode     cancel.Mode
	events   []Event
	outcomes []Outcome
	deleted  []bool // by this call
	absent   []bool // it was in no process and not stored, at the last look
}

// Cancel ends at most Batch events wherever they wait or run, until ctx is done. silent are processes that did not
// answer: what no other process has of the events stays, and is Ending, because they may have it.
func (f *Fleet) Cancel(ctx context.Context, list []Event) (outcomes []Outcome, silent []string, err error) {
	return f.take(ctx, list, cancel.All)
}

// take ends events as mode says.
func (f *Fleet) take(ctx context.Context, list []Event, mode cancel.Mode) ([]Outcome, []string, error) {
	t := &taking{asker: asker{Fleet: f, ever: map[string]bool{}}, mode: mode, events: list,
		outcomes: make([]Outcome, len(list)), deleted: make([]bool, len(list)), absent: make([]bool, len(list))}
	pending := make([]int, len(list))
	for i := range list {
		pending[i] = i
	}
	var err error
	for n, wait := 1, again; ; n, wait = n+1, min(2*wait, againMax) {
		if pending, err = t.round(ctx, pending); len(pending) == 0 || err != nil {
			break
		}
		if mode != cancel.All && (n == waitingRounds || len(t.silent) > 0) {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			continue
		}
		break
	}
	if ctx.Err() != nil {
		err = nil // what is pending says it
	}
	ctx = context.WithoutCancel(ctx)
	t.release(ctx, t.answerFor(ctx, pending))
	return t.outcomes, slices.Sorted(maps.Keys(t.ever)), err
}

// answerFor answers for those of the pending events whose messages are deleted and that no process ends. It returns the
// others.
func (t *taking) answerFor(ctx context.Context, pending []int) (left []int) {
	var mine []int
	for _, i := range pending {
		if t.deleted[i] {
			mine = append(mine, i)
		} else {
			left = append(left, i)
		}
	}
	if len(mine) == 0 {
		return left
	}
	states, err := t.ask(ctx, t.ids(mine), cancel.Deleted)
	if err != nil { // the messages are gone: somebody has to answer
		states = make([]cancel.State, len(mine))
	}
	return append(left, t.answer(mine, states)...)
}

// round asks once about the pending events, and returns those that are still pending.
func (t *taking) round(ctx context.Context, pending []int) (left []int, err error) {
	states, err := t.ask(ctx, t.ids(pending), t.mode)
	if err != nil {
		return pending, err
	}
	var free []int
	for n, i := range pending {
		switch states[n] {
		case cancel.Ending, cancel.Busy:
			t.absent[i] = false
			left = append(left, i)
		case cancel.Running:
			t.outcomes[i] = Running
		case cancel.Moved:
			t.outcomes[i] = Moved
		case cancel.Ended:
			t.outcomes[i] = Ended
		case cancel.Cancelled:
			t.outcomes[i] = Cancelled
			free = append(free, i) // its ack may be under way
		case cancel.Absent:
			if len(t.silent) > 0 && !t.deleted[i] { // one of them may have it
				left = append(left, i)
			} else {
				free = append(free, i)
			}
		}
	}
	more, err := t.delete(ctx, free)
	return append(left, more...), err
}

// delete deletes messages that no process has, and answers for them. It returns those about which processes must be
// asked again.
func (t *taking) delete(ctx context.Context, list []int) (left []int, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	gone, err := t.deleteAll(ctx, list)
	var mine []int
	for n, i := range list {
		switch {
		case t.outcomes[i] == Cancelled: // a process has ended it
		case gone[n] || t.deleted[i]:
			t.deleted[i] = true
			mine = append(mine, i)
		case err != nil:
			left = append(left, i)
		case t.absent[i]: // twice: no process knows how it ended, so it may have moved
			t.outcomes[i] = Moved
		default:
			t.absent[i] = true
			left = append(left, i)
		}
	}
	if len(mine) == 0 {
		return left, err
	}
	states, askErr := t.ask(context.WithoutCancel(ctx), t.ids(mine), cancel.Deleted)
	if askErr != nil {
		return append(left, mine...), cmp.Or(err, askErr)
	}
	return append(left, t.answer(mine, states)...), err
}

// answer answers for deleted events that no process has. It returns those about which processes must be asked again.
func (t *taking) answer(list []int, states []cancel.State) (left []int) {
	for n, i := range list {
		switch states[n] {
		case cancel.Running: // a process got it before it was asked first
			if t.mode == cancel.All {
				left = append(left, i)
				continue
			}
			t.outcomes[i] = Running
		case cancel.Cancelled:
			t.outcomes[i] = Cancelled
		case cancel.Ended:
			t.outcomes[i] = Ended
		case cancel.Moved:
			t.outcomes[i] = Moved
		case cancel.Busy:
			left = append(left, i)
		case cancel.Absent, cancel.Ending:
			t.outcomes[i] = Cancelled
			t.Process.AnswerCancelled(t.events[i].Stream, t.events[i].Message)
		}
	}
	return left
}

// release lets events start again that stay, and says what the pending ones are.
func (t *taking) release(ctx context.Context, pending []int) {
	for _, i := range pending {
		if t.outcomes[i] = Ending; t.mode != cancel.All {
			t.outcomes[i] = Running
		}
	}
	var stay []int
	for i, o := range t.outcomes {
		if o == Running && !t.deleted[i] {
			stay = append(stay, i)
		}
	}
	if len(stay) > 0 {
		_, _ = t.ask(ctx, t.ids(stay), cancel.Released) // else they may start after a while
	}
}

func (t *taking) ids(list []int) []cancel.ID {
	ids := make([]cancel.ID, len(list))
	for n, i := range list {
		ids[n] = t.events[i].id()
	}
	return ids
}
