package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/env/bindings"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// host is the isolates.Host of a process. It publishes to NATS the tasks and log lines of handlers, and carries out the
// calls of their bindings.
type host struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	subjects events.Subjects
	// admit says why tasks of this number and size must not be stored, or returns nil.
	admit func(owner string, count, size int) *events.Failure
	// published notes whether the stream took a task: err is that of the publish.
	published func(err error)
	// batches publishes tasks of sendBatch(). What is under way is held against runs, so it has no bound here.
	batches jetstream.JetStream
	see     func(*events.LogLine) // shows a line to tails and the collector; nil = neither
	*bindings.Bindings
	log zerolog.Logger
}

// openHost returns the host of p.
func openHost(p *Process, js jetstream.JetStream) (*host, error) {
	nc, c := p.link.nc, p.rooms.consumer
	h := &host{nc: nc, js: js, subjects: events.Subjects(p.cfg.Prefix), admit: c.AdmitSend,
		published: c.Published, see: p.onlookers.seeLine, log: p.log}
	var err error
	if h.batches, err = openBatches(nc); err == nil {
		h.Bindings, err = bindings.New(nc, js, p.bindingsConfig(), p.registry)
	}
	return h, err
}

// openBatches returns what publishes batches. An ack that has not come after the timeout is forgotten.
func openBatches(nc *nats.Conn) (jetstream.JetStream, error) {
	return jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(1<<30), jetstream.WithPublishAsyncTimeout(time.Minute))
}

// Bounds of a batch of tasks; js/bindings/queues.js has the same.
const (
	maxBatch      = 100
	maxBatchBytes = 256 << 10 // of the bodies
)

// Enqueue publishes tasks and waits until the stream has stored them. Either all are admitted or none.
func (h *host) Enqueue(ctx context.Context, owner, worker string, tasks []isolates.Message) error {
	if len(tasks) > maxBatch {
		return fmt.Errorf("the batch has %d messages: at most %d", len(tasks), maxBatch)
	}
	list, size, bodies := make([]*nats.Msg, len(tasks)), 0, 0
	for i, task := range tasks {
		m, err := h.message(owner, worker, task)
		if err != nil {
			return err
		}
		list[i], size, bodies = m, size+m.Size(), bodies+len(m.Data)
	}
	if len(tasks) > 1 && bodies > maxBatchBytes {
		return fmt.Errorf("the bodies of the batch have %d bytes: at most %d together", bodies, maxBatchBytes)
	}
	if f := h.admit(owner, len(list), size); f != nil {
		return notStored(0, len(list), errors.New(f.Message))
	}
	if len(list) == 1 {
		_, err := h.js.PublishMsg(ctx, list[0])
		if h.published(err); err != nil {
			return notStored(0, 1, err)
		}
		return nil
	}
	return h.publish(ctx, list)
}

// message makes the message of a task.
func (h *host) message(owner, worker string, task isolates.Message) (*nats.Msg, error) {
	m := nats.NewMsg(h.subjects.Event(events.Task, owner, worker))
	m.Data = task.Body
	if task.ContentType != "" {
		m.Header.Set(events.HeaderContentType, task.ContentType)
	}
	for i := 0; i+1 < len(task.Headers); i += 2 {
		name, value := task.Headers[i], task.Headers[i+1]
		if bindings.Steers(name) {
			return nil, fmt.Errorf("header %s: a handler may not set it", name)
		}
		m.Header[name] = append(m.Header[name], value)
	}
	return m, nil
}

// publish publishes a batch: all messages at once, and then it waits for all acks.
func (h *host) publish(ctx context.Context, list []*nats.Msg) (err error) {
	acks := make([]jetstream.PubAckFuture, 0, len(list))
	for _, m := range list {
		ack, failed := h.batches.PublishMsgAsync(m)
		if failed != nil { // the connection is closed, or the message is too large
			err = cmp.Or(err, failed)
			continue
		}
		acks = append(acks, ack)
	}
	stored := 0
	for _, ack := range acks {
		select {
		case <-ack.Ok():
			stored++
		case failed := <-ack.Err():
			err = cmp.Or(err, failed)
		case <-ctx.Done():
			return notStored(stored, len(list), ctx.Err())
		}
	}
	if h.published(err); err != nil {
		return notStored(stored, len(list), err)
	}
	return nil
}

// notStored is the error of a send. Tasks whose ack did not come may be stored all the same.
func notStored(stored, of int, why error) error {
	if of == 1 {
		return fmt.Errorf("the task was not stored: %w", why)
	}
	return fmt.Errorf("%d of %d tasks are known to be stored: %w", stored, of, why)
}

// Log publishes a line to the current subscribers. It is not stored.
func (h *host) Log(line events.LogLine) {
	if h.see != nil {
		h.see(&line)
	}
	data, err := json.Marshal(line)
	if err == nil {
		err = h.nc.Publish(h.subjects.Logs(line.Owner, line.Worker), data)
	}
	if err != nil {
		h.log.Debug().Err(err).Str("worker", line.Owner+"/"+line.Worker).Msg("log line lost")
	}
}
