package bindings

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Message is a message of env.QUEUE.send() or sendBatch().
type Message struct {
	Body        []byte
	ContentType string
	Headers     []string // name, value, name, value …
}

// Queues store tasks for other workers. Enqueue is called from its own goroutines.
type Queues interface {
	// Enqueue stores task events for owner's worker and returns once all are acknowledged. The error says how many of
	// several are stored.
	Enqueue(ctx context.Context, owner, worker string, tasks []Message) error
}

// Send is a call of env.QUEUE.send() or sendBatch().
type Send struct {
	worker string
	Tasks  []Message
}

// ReadSend reads a call from the commands of a turn. Until Keep, the bodies are JavaScript's memory and are valid only
// during the turn.
func ReadSend(in *v8x.Commands) (*Send, error) {
	s := &Send{worker: in.Text()}
	texts, body := in.Strings(), in.View()
	for len(texts) >= 3 {
		size, err := strconv.Atoi(texts[0])
		count, wrong := strconv.Atoi(texts[2])
		if err != nil || wrong != nil || size < 0 || size > len(body) || count < 0 || count > len(texts)-3 {
			break
		}
		s.Tasks = append(s.Tasks, Message{Body: body[:size], ContentType: texts[1], Headers: texts[3 : 3+count]})
		texts, body = texts[3+count:], body[size:]
	}
	if len(s.Tasks) == 0 || len(texts) > 0 || len(body) > 0 {
		return nil, errors.New("the tasks were not read: the sizes are wrong")
	}
	return s, nil
}

// Keep copies the bodies.
func (s *Send) Keep() {
	for i := range s.Tasks {
		s.Tasks[i].Body = slices.Clone(s.Tasks[i].Body)
	}
}

// Operation is the send as a part of its run.
func (s *Send) Operation() lifecycle.Operation {
	op := lifecycle.Operation{Kind: lifecycle.SendTasks, Count: len(s.Tasks)}
	if events.CheckName("worker", s.worker) == nil {
		op.To = s.worker
	}
	for _, t := range s.Tasks {
		op.Size += len(t.Body)
	}
	return op
}

// Trace names the span of the send in the headers of the tasks whose handler has not named another one.
func (s *Send) Trace(span events.TraceContext) {
	for i := range s.Tasks {
		s.Tasks[i].Headers = span.AddTo(s.Tasks[i].Headers)
	}
}

// Do stores the tasks for a worker of the same owner.
func (s *Send) Do(ctx context.Context, queues Queues, owner string) error {
	if err := events.CheckName("worker", s.worker); err != nil {
		return err
	}
	return queues.Enqueue(ctx, owner, s.worker, s.Tasks)
}
