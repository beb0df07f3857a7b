package attempts

import (
	"context"
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
)

// endedAge is how long it is recorded how a process ended. An event that ran in it comes again much sooner.
const endedAge = 24 * time.Hour

func endedSubject(instance string) string {
	return "$KV." + events.BucketAttempts + ".ended." + instance
}

// PutEnded records how a process ended. The bucket exists. Any goroutine may call it, also for what is recorded
// already.
func PutEnded(ctx context.Context, js jetstream.JetStream, e crashnote.Ended) error {
	if !events.ValidName(e.Instance) {
		return nil // no record names it
	}
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = js.Publish(ctx, endedSubject(e.Instance), body,
		jetstream.WithExpectStream(resources.BucketStream(events.BucketAttempts)), jetstream.WithMsgTTL(endedAge))
	return err
}

// FindEnded reads why a process ended, and calls done with it. It is Unknown while nobody has recorded it.
func (s *Store) FindEnded(instance string, done func(crashnote.Cause, error)) {
	if !events.ValidName(instance) {
		done(crashnote.Unknown, nil)
		return
	}
	s.api.LookUp(resources.BucketStream(events.BucketAttempts), endedSubject(instance),
		func(m *stored.Message, err error) {
			var e crashnote.Ended
			if m != nil && json.Unmarshal(m.Data, &e) != nil {
				e.Cause = crashnote.Unknown
			}
			done(e.Cause, err)
		})
}
