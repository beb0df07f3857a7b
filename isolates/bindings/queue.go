package bindings

import (
	"context"
	"slices"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Message is the argument of env.QUEUE.send().
type Message struct {
	Body        []byte
	ContentType string
	Headers     []string // name, value, name, value …
}

// Queues store tasks for other workers. Enqueue is called from its own goroutines.
type Queues interface {
	// Enqueue stores a task event for owner's worker and returns once it is acknowledged.
	Enqueue(ctx context.Context, owner, worker string, task Message) error
}

// Send is a call of env.QUEUE.send().
type Send struct {
	worker string
	task   Message
}

// ReadSend reads a call from the commands of a turn. Until Keep, its body is JavaScript's memory and is valid only
// during the turn.
func ReadSend(in *v8x.Commands) Send {
	s := Send{worker: in.Text()}
	s.task.Body = in.View()
	s.task.ContentType, s.task.Headers = in.Text(), in.Strings()
	return s
}

// Keep copies the body.
func (s *Send) Keep() { s.task.Body = slices.Clone(s.task.Body) }

// Do stores the task for a worker of the same owner.
func (s *Send) Do(ctx context.Context, queues Queues, owner string) error {
	if err := events.CheckName("worker", s.worker); err != nil {
		return err
	}
	return queues.Enqueue(ctx, owner, s.worker, s.task)
}
