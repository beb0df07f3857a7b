package manifest

import (
	"fmt"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// wranglerQueues are the queues of wrangler's configuration. A queue's name is the name of the worker that takes its
// messages.
type wranglerQueues struct {
	Producers []struct {
		Binding string `json:"binding"`
		Queue   string `json:"queue"`
	} `json:"producers"`
	Consumers []wranglerConsumer `json:"consumers"`
}

type wranglerConsumer struct {
	Queue           string `json:"queue"`
	Type            string `json:"type"`
	MaxBatchSize    int    `json:"max_batch_size"`
	MaxBatchTimeout *int   `json:"max_batch_timeout"` // seconds
	MaxRetries      *int   `json:"max_retries"`
	DeadLetterQueue string `json:"dead_letter_queue"`
	MaxConcurrency  int    `json:"max_concurrency"`
	RetryDelay      *int   `json:"retry_delay"` // seconds
}

// cloudflareRetries are the retries of a consumer that does not say how many.
const cloudflareRetries = 3

func (m *Manifest) wranglerQueues(q wranglerQueues) error {
	for i, p := range q.Producers {
		path := fmt.Sprintf("queues.producers[%d]", i)
		switch {
		case p.Binding == "" || p.Queue == "":
			return m.d.fail(m.d.at[path], "%s has a binding and a queue", path)
		case m.Queues[p.Binding] != "":
			return m.d.fail(m.d.at[path], "%s.binding is %q: another producer has that name", path, shorten(p.Binding))
		case m.Queues == nil:
			m.Queues = map[string]string{}
		}
		m.Queues[p.Binding] = p.Queue
		m.stands("queues."+p.Binding, path+".queue")
	}
	for i, c := range q.Consumers {
		path := fmt.Sprintf("queues.consumers[%d]", i)
		if i > 0 {
			return m.d.fail(m.d.at[path], "%s: a worker takes the messages of one queue, which has its name", path)
		}
		if err := m.wranglerConsumer(path, c); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manifest) wranglerConsumer(path string, c wranglerConsumer) error {
	at := func(key string) int64 { return m.d.place(path + "." + key) }
	switch {
	case c.Queue == "":
		return m.d.fail(m.d.at[path], "%s has a queue", path)
	case m.Name == "":
		return m.d.fail(at("queue"), "%s.queue is %q: the worker with the queue's name takes its messages, so the manifest needs a name", path, shorten(c.Queue))
	case c.Queue != m.Name:
		return m.d.fail(at("queue"), "%s.queue is %q: the worker with the queue's name takes its messages, and this one is %q; name both the same", path, shorten(c.Queue), m.Name)
	case c.Type != "" && c.Type != "worker":
		return m.d.fail(at("type"), "%s.type is %q: it is worker; messages are not pulled over HTTP", path, shorten(c.Type))
	}
	for _, n := range []struct {
		key    string
		value  *int
		lo, hi int
	}{
		{"max_batch_timeout", c.MaxBatchTimeout, 0, 60}, {"max_retries", c.MaxRetries, 0, 99},
		{"retry_delay", c.RetryDelay, 0, 3600},
	} {
		if n.value != nil && (*n.value < n.lo || *n.value > n.hi) {
			return m.d.fail(at(n.key), "%s.%s is %d: it is %d to %d", path, n.key, *n.value, n.lo, n.hi)
		}
	}
	m.Batch = &workers.Batch{MaxSize: c.MaxBatchSize}
	if c.MaxBatchTimeout != nil {
		m.Batch.MaxWait = new(workers.Millis(time.Duration(*c.MaxBatchTimeout) * time.Second))
	}
	retries := cloudflareRetries
	if c.MaxRetries != nil {
		retries = *c.MaxRetries
	}
	m.Retries.MaxAttempts = retries + 1
	if c.RetryDelay != nil { // always the same one
		delay := workers.Millis(max(time.Millisecond, time.Duration(*c.RetryDelay)*time.Second))
		m.Retries.Initial, m.Retries.Max, m.Retries.Factor, m.Retries.Jitter = delay, delay, 1, new(0.0)
	}
	if c.DeadLetterQueue != "" {
		m.OnDead = &events.DeadHook{Worker: c.DeadLetterQueue}
	}
	m.Concurrency = c.MaxConcurrency
	for field, key := range map[string]string{
		"batch": "queue", "batch.maxSize": "max_batch_size", "concurrency": "max_concurrency",
		"onDeadLetter.worker": "dead_letter_queue",
	} {
		m.stands(field, path+"."+key)
	}
	return nil
}
