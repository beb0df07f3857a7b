package storage

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
)

// noLeader reports whether an error of a publish says that no server takes messages for the stream: it has no leader,
// or the leader does not answer.
func noLeader(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, jsapi.ErrNoAnswer)
}

// noteLeader notes that the stream has a leader.
func (f *level) noteLeader() {
	if f.since.Load() != 0 { // a load is cheaper, and there is almost always nothing to note
		f.since.Store(0)
	}
}

// noteNoLeader notes that no server takes messages for the stream.
func (f *level) noteNoLeader() { f.since.CompareAndSwap(0, time.Now().UnixNano()) }

// noteLeaderOf notes what JetStream said of the leader. The answer to a question before the last refusal does not
// count.
func (f *level) noteLeaderOf(info *jetstream.StreamInfo, asked time.Time) {
	switch {
	case info.Cluster != nil && info.Cluster.Leader == "":
		f.noteNoLeader()
	case f.since.Load() < asked.UnixNano():
		f.noteLeader()
	}
}

// leaderless returns an error while no server takes messages for the stream, or nil.
func (f *level) leaderless() error {
	since := f.since.Load()
	if since == 0 {
		return nil
	}
	return fmt.Errorf("storage: no server takes messages for %s since %s: it has no leader, or the leader does not answer",
		f.name, time.Unix(0, since).UTC().Format(time.RFC3339))
}
