package attempts

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/storage"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// Store reads and writes the bucket of records. Its methods are for the loop of its Client, except Forget, which any
// goroutine may call.
type Store struct {
	api   *jsapi.Client
	usage *storage.Usage
	log   zerolog.Logger
}

// NewStore makes a Store.
func NewStore(api *jsapi.Client, usage *storage.Usage, log zerolog.Logger) *Store {
	return &Store{api, usage, log}
}

func subject(e *events.Event) string {
	return "$KV." + events.BucketAttempts + "." + e.Origin.Stream + "." + strconv.FormatUint(e.Origin.Seq, 10)
}

// Find reads the record of e, and calls done with it, nil when there is none.
func (s *Store) Find(e *events.Event, done func(*Record, error)) {
	s.api.LookUp(resources.BucketStream(events.BucketAttempts), subject(e), func(m *stored.Message, err error) {
		done(decode(m, e), err)
	})
}

// Put stores r as the record of e, and then calls done. It tries again for limit (0: until it is stored) or until stale
// reports that there is a newer record to store. done is called whether or not it was stored: a lost record only makes
// the number of attempts too high.
func (s *Store) Put(e *events.Event, r Record, limit time.Duration, stale func() bool, done func()) {
	body, _ := json.Marshal(r) // strings, numbers and times of this century cannot fail
	s.put(subject(e), body, jsapi.NewRetrier(limit), stale, done)
}

func (s *Store) put(subject string, body []byte, tries *jsapi.Retrier, stale func() bool, done func()) {
	s.api.Store(&nats.Msg{Subject: subject, Data: body}, func(_ jsapi.Ack, err error) {
		if err != nil {
			s.usage.Published(resources.BucketStream(events.BucketAttempts), err)
			s.api.Missing()
			if !stale() && s.api.Retry(tries, func() { s.put(subject, body, tries, stale, done) }) {
				return
			}
		}
		done()
	})
}

// Forget removes the record of e, which has ended. JetStream removes the deletion marker after a minute.
func (s *Store) Forget(e *events.Event) {
	m := &nats.Msg{Subject: subject(e), Header: nats.Header{
		"KV-Operation": {"PURGE"}, jsapi.HeaderRollup: {"sub"}, "Nats-TTL": {"60s"},
	}}
	if err := s.api.NC.PublishMsg(m); err != nil {
		s.log.Debug().Err(err).Msg("the attempt record of an ended event could not be removed; it stays until it expires")
	}
}
