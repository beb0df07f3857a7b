package cancels

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/cancel"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

const (
	// Batch is how many events processes are asked about at once.
	Batch = 500
	// askWait is how long the processes of the fleet may take to answer. Each answers at once: it waits for no run.
	askWait = 2 * time.Second
)

// Process is the process that takes events out of the queue, as this package uses it.
type Process interface {
	// Cancel says what this process has of events, and ends them as mode says.
	Cancel(ctx context.Context, list []cancel.ID, mode cancel.Mode) ([]cancel.State, error)
	// AnswerCancelled answers for an event whose message was deleted before any process had it.
	AnswerCancelled(stream string, m *stored.Message)
	// Now is the time by the clock of NATS.
	Now() time.Time
}

// Fleet is what the processes of a fleet ask each other. Its subject is one of the fleet's own: owners cannot publish
// to it, and what it does needs no token.
type Fleet struct {
	NC      *nats.Conn
	Prefix  string
	ID      string // of this process
	Process Process
	// Known returns the IDs of the processes that this one knows, itself included.
	Known func() []string
	Log   zerolog.Logger
}

type question struct {
	Events []cancel.ID `json:"events"`
	Mode   cancel.Mode `json:"mode"`
}

type answer struct {
	ID     string         `json:"id"`
	States []cancel.State `json:"states"`
}

func (f *Fleet) subject() string { return f.Prefix + ".control.cancels" }

// Hear answers for this process until ctx is done.
func (f *Fleet) Hear(ctx context.Context) {
	sub, err := f.NC.Subscribe(f.subject(), func(m *nats.Msg) { f.answer(ctx, m) })
	if err != nil {
		f.Log.Warn().Err(err).Msg("cancellations of events cannot be received")
		return
	}
	<-ctx.Done()
	_ = sub.Unsubscribe()
}

func (f *Fleet) answer(ctx context.Context, m *nats.Msg) {
	var q question
	if json.Unmarshal(m.Data, &q) != nil || !q.Mode.Valid() || len(q.Events) == 0 || len(q.Events) > Batch {
		return
	}
	ctx, stop := context.WithTimeout(ctx, askWait)
	defer stop()
	states, err := f.Process.Cancel(ctx, q.Events, q.Mode)
	if err != nil {
		return // the process ends
	}
	if text, err := json.Marshal(answer{f.ID, states}); err == nil && m.Reply != "" {
		_ = m.Respond(text) // not connected: who asked counts this process as silent
	}
}

// asker asks all processes again and again.
type asker struct {
	*Fleet
	silent map[string]bool // processes that did not answer when they were asked last
	ever   map[string]bool // those that did not at any time
}

// ask returns the states of events, over all processes. The weightiest counts.
func (a *asker) ask(ctx context.Context, list []cancel.ID, mode cancel.Mode) ([]cancel.State, error) {
	ctx, stop := context.WithTimeout(ctx, askWait)
	defer stop()
	inbox := a.NC.NewInbox()
	answers, err := a.NC.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answers.Unsubscribe() }()
	text, err := json.Marshal(question{list, mode})
	if err != nil {
		return nil, err
	}
	awaited := map[string]bool{a.ID: true}
	for _, id := range a.Known() {
		awaited[id] = true
	}
	if err := a.NC.PublishRequest(a.subject(), inbox, text); err != nil {
		return nil, err
	}
	states := make([]cancel.State, len(list))
	for len(awaited) > 0 {
		m, err := answers.NextMsgWithContext(ctx)
		if errors.Is(err, context.DeadlineExceeded) && !awaited[a.ID] {
			break
		}
		if err != nil {
			return nil, err
		}
		var one answer
		if json.Unmarshal(m.Data, &one) != nil || len(one.States) != len(list) {
			continue
		}
		delete(awaited, one.ID)
		for i, s := range one.States {
			if weight(s) > weight(states[i]) {
				states[i] = s
			}
		}
	}
	a.silent = awaited
	maps.Copy(a.ever, awaited)
	return states, nil
}

// weight orders what processes say of one event: what goes on before what is over.
func weight(s cancel.State) int {
	switch s {
	case cancel.Ending:
		return 6
	case cancel.Busy:
		return 5
	case cancel.Running:
		return 4
	case cancel.Cancelled:
		return 3
	case cancel.Moved:
		return 2
	case cancel.Ended:
		return 1
	case cancel.Absent:
	}
	return 0
}
