package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/tail"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// host is the isolates.Host of a process. It publishes to NATS the tasks and log lines of handlers.
type host struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	subjects events.Subjects
	// admit says why a task of this size must not be stored, or returns nil.
	admit func(owner string, size int) *events.Failure
	tails *tail.Hub // nil: none
	log   zerolog.Logger
}

// Enqueue publishes a task and waits until the stream has stored it.
func (h *host) Enqueue(ctx context.Context, owner, worker string, task isolates.Message) error {
	m := nats.NewMsg(h.subjects.Event(events.Task, owner, worker))
	m.Data = task.Body
	if task.ContentType != "" {
		m.Header.Set(events.HeaderContentType, task.ContentType)
	}
	for i := 0; i+1 < len(task.Headers); i += 2 {
		name, value := task.Headers[i], task.Headers[i+1]
		if reserved(name) {
			return fmt.Errorf("header %s: a handler may not set it", name)
		}
		m.Header[name] = append(m.Header[name], value)
	}
	if f := h.admit(owner, m.Size()); f != nil {
		return fmt.Errorf("the task was not stored: %s", f.Message)
	}
	if _, err := h.js.PublishMsg(ctx, m); err != nil {
		return fmt.Errorf("the task was not stored: %w", err)
	}
	return nil
}

// reserved reports whether a header controls NATS or Pinwheel. A handler may not set such a header.
func reserved(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasPrefix(lower, "nats-") || strings.HasPrefix(lower, "dead-") || lower == "status" ||
		lower == "description" || strings.EqualFold(name, events.HeaderReplyTo)
}

// Log publishes a line to the current subscribers. It is not stored.
func (h *host) Log(line events.LogLine) {
	h.tails.Log(&line)
	data, err := json.Marshal(line)
	if err == nil {
		err = h.nc.Publish(h.subjects.Logs(line.Owner, line.Worker), data)
	}
	if err != nil {
		h.log.Debug().Err(err).Str("worker", line.Owner+"/"+line.Worker).Msg("log line lost")
	}
}
