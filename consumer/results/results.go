package results

import (
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/storage"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// headroom is the room in a message for what is added to a stored result.
const headroom = 1 << 10

// Stream is the configuration of the stream of results. It has at most maxBytes, and one message for each result. A
// result is removed after maxAge. The oldest results of an owner that has more than its share are removed too (package
// storage). After that the event would run again. A result that finds no room waits until others are removed.
func Stream(prefix events.Subjects, replicas int, maxBytes int64, maxAge time.Duration) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: events.StreamResults, Description: "Results of idempotent workers", Subjects: []string{prefix.AllResults()},
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, Replicas: replicas, MaxMsgsPerSubject: 1,
		MaxBytes: max(1<<20, maxBytes), MaxAge: maxAge, Discard: jetstream.DiscardNew,
	}
}

// Store stores and finds results. Its methods are for the loop of its Client.
type Store struct {
	api    *jsapi.Client
	usage  *storage.Usage
	prefix events.Subjects
}

// NewStore makes a Store.
func NewStore(api *jsapi.Client, usage *storage.Usage, prefix events.Subjects) *Store {
	return &Store{api, usage, prefix}
}

// Find calls done with the result of e, or nil when there is none. Then e has not succeeded before: neither in a run
// whose ack was lost, nor as another publish of the same id.
func (s *Store) Find(e *events.Event, attempt int, done func(*events.Reply, error)) {
	s.api.LookUp(events.StreamResults, s.prefix.Result(e), func(m *stored.Message, err error) {
		if m == nil || err != nil {
			done(nil, err)
			return
		}
		done(events.DecodeResult(e, attempt, events.Header(m.Header), m.Data), nil)
	})
}

// Message is the message of r as the result of e. If the result is too large for a message, tooLarge is its size, and
// the message only says that there was a result.
func (s *Store) Message(e *events.Event, r *events.Reply) (m *nats.Msg, tooLarge int) {
	m = message(s.prefix.Result(e), r)
	if payload := s.api.NC.MaxPayload(); int64(m.Size()) > payload-headroom || !jsapi.Fits(m, payload) {
		return message(m.Subject, nil), len(m.Data)
	}
	return m, 0
}

func message(subject string, r *events.Reply) *nats.Msg {
	if r == nil || r.Stream != nil || r.Dropped > 0 {
		return &nats.Msg{Subject: subject, Header: nats.Header(events.EncodeResult(nil))}
	}
	return &nats.Msg{Subject: subject, Header: nats.Header(events.EncodeResult(r)), Data: r.Body}
}

// Put stores the message of a result, and calls done. It tries once.
func (s *Store) Put(m *nats.Msg, done func(error)) {
	s.api.Store(m, func(_ jsapi.Ack, err error) {
		if err == nil {
			s.usage.Grew(events.StreamResults, m.Size())
		} else {
			s.usage.Published(events.StreamResults, err)
			s.api.Missing()
		}
		done(err)
	})
}
