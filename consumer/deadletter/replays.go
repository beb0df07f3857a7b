package deadletter

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// ReplayState is the state of a replay.
type ReplayState string

// The states of a replay.
const (
	ReplayWaiting   ReplayState = "waiting"   // its event is stored, and no process has taken it
	ReplayRunning   ReplayState = "running"   // a process has taken it: it runs, or waits for its owner's turn or its next run
	ReplayPutOff    ReplayState = "put-off"   // it is parked, or waits among the schedules for its next run
	ReplaySucceeded ReplayState = "succeeded" // it succeeded and will not run again
	ReplayFailed    ReplayState = "failed"    // a fetch event that was answered with an error: it has no dead letter
	ReplayDead      ReplayState = "dead"      // it is a dead letter again
	ReplayUnknown   ReplayState = "unknown"   // it no longer exists, and how it ended is not known
)

// ReplayStates returns all states of replays.
func ReplayStates() []ReplayState {
	return []ReplayState{ReplayWaiting, ReplayRunning, ReplayPutOff, ReplaySucceeded, ReplayFailed, ReplayDead,
		ReplayUnknown}
}

// Replayed is a replay of a dead letter, and its state.
type Replayed struct {
	Letter  uint64    `json:"id"`      // number of the letter, which no longer exists
	Owner   string    `json:"owner"`   // of the letter
	Worker  string    `json:"worker"`  // worker of the replay
	Version string    `json:"version"` // version of the replay; empty = the active one
	Kind    string    `json:"kind"`
	EventID string    `json:"eventId"`
	Replay  int       `json:"replay"` // number of this replay of the event, from 1
	At      time.Time `json:"at"`     // when it was published

	State   ReplayState   `json:"state"`
	Ended   time.Time     `json:"ended,omitzero"`
	Reason  events.Reason `json:"reason,omitempty"` // why it failed
	Message string        `json:"message,omitempty"`
	Dead    uint64        `json:"dead,omitempty"` // number of the new dead letter

	seq uint64 // of its event in the stream of events
}

// replayRecord is the record of a replay, stored by the process that published it.
type replayRecord struct {
	Letter  uint64    `json:"letter"`
	Worker  string    `json:"worker"`
	Version string    `json:"version,omitempty"`
	Kind    string    `json:"kind"`
	EventID string    `json:"eventId"`
	Replay  int       `json:"replay"`
	At      time.Time `json:"at"`
	Seq     uint64    `json:"seq"`
}

// maxReplayRecords is how many replays of an owner are remembered. They expire after attemptsTTL in any case.
const maxReplayRecords = 10_000

// ReplayFilter chooses replays. The zero ReplayFilter chooses all.
type ReplayFilter struct {
	Owner, Worker string // "" = any
	Letters       []uint64
	State         ReplayState // "" = any
	Limit         int         // maximum number, the newest ones; 0 = no limit
}

// replayedSubject returns the subject of the record of a replay. replayedSubject(owner, ">") is the filter of an
// owner's records.
func replayedSubject(owner, id string) string {
	return "$KV." + events.BucketAttempts + ".replayed." + owner + "." + id
}

// note stores that a letter was replayed.
func (d *Store) note(ctx context.Context, letter *events.DeadLetter, worker, version string, seq uint64) error {
	body, err := json.Marshal(replayRecord{
		Letter: letter.Seq, Worker: worker, Version: version, Kind: letter.Kind, EventID: letter.EventID,
		Replay: letter.Replays + 1,
		At:     time.Now().UTC(), Seq: seq,
	})
	if err != nil {
		return err
	}
	_, err = d.js.Publish(ctx, replayedSubject(letter.Owner, letter.ReplayID()), body,
		jetstream.WithExpectStream(resources.BucketStream(events.BucketAttempts)))
	return err
}

// forgetReplays removes the oldest replays of these owners, beyond the number that is remembered.
func (d *Store) forgetReplays(ctx context.Context, owners map[string]int) error {
	if len(owners) == 0 {
		return nil
	}
	stream, err := d.js.Stream(ctx, resources.BucketStream(events.BucketAttempts))
	if err != nil {
		return err
	}
	for owner := range owners {
		if err := stream.Purge(ctx, jetstream.WithPurgeSubject(replayedSubject(owner, ">")),
			jetstream.WithPurgeKeep(maxReplayRecords)); err != nil {
			return err
		}
	}
	return nil
}

// Replays iterates over the replays that f chooses, the oldest first, with their states. The replays of the last 14
// days are known, at most the last 10000 of an owner. Letters in f.Letters without such a replay are left out.
func (d *Store) Replays(ctx context.Context, f ReplayFilter) iter.Seq2[*Replayed, error] {
	return func(yield func(*Replayed, error) bool) {
		chosen, err := d.replaysOf(ctx, f)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, r := range chosen {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (d *Store) replaysOf(ctx context.Context, f ReplayFilter) ([]*Replayed, error) {
	var all []*Replayed
	filter := replayedSubject(cmp.Or(f.Owner, "*"), ">")
	for m, err := range stored.All(ctx, d.js.Conn(), resources.BucketStream(events.BucketAttempts), filter, 1) {
		if err != nil {
			return nil, fmt.Errorf("replays: %w", err)
		}
		r, id := decodeReplayed(m)
		if r == nil || f.Worker != "" && f.Worker != r.Worker || f.Letters != nil && !slices.Contains(f.Letters, r.Letter) {
			continue
		}
		if err := d.findState(ctx, r, id); err != nil {
			return nil, fmt.Errorf("replay of dead letter %d: %w", r.Letter, err)
		}
		if f.State != "" && f.State != r.State {
			continue
		}
		if all = append(all, r); f.Limit > 0 && len(all) > f.Limit {
			all = all[1:]
		}
	}
	return all, nil
}

// CameOf finds the replay that ended with letter, because its event failed again. It returns nil when the letter's
// event is no replay, or when nothing more is known of the replay.
func (d *Store) CameOf(ctx context.Context, letter *events.DeadLetter) (*Replayed, error) {
	id, _, ok := events.ParseReplayMark(letter.Header.Get(events.HeaderReplay))
	if !ok || !events.ValidName(letter.Owner) {
		return nil, nil
	}
	m, err := stored.Get(ctx, d.js.Conn(), resources.BucketStream(events.BucketAttempts),
		stored.Request{Last: replayedSubject(letter.Owner, id)})
	if errors.Is(err, stored.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("replay that dead letter %d came of: %w", letter.Seq, err)
	}
	r, _ := decodeReplayed(m)
	return r, nil
}

// decodeReplayed decodes a record and the id of its replay. It returns nil when m is no such record.
func decodeReplayed(m *stored.Message) (r *Replayed, id string) {
	rest, ok := strings.CutPrefix(m.Subject, "$KV."+events.BucketAttempts+".replayed.")
	owner, id, more := strings.Cut(rest, ".")
	var record replayRecord
	if !ok || !more || json.Unmarshal(m.Data, &record) != nil || record.Letter == 0 {
		return nil, ""
	}
	return &Replayed{
		Letter: record.Letter, Owner: owner, Worker: record.Worker, Version: record.Version, Kind: record.Kind,
		EventID: record.EventID,
		Replay:  record.Replay, At: record.At, seq: record.Seq,
	}, id
}

// findState finds out the state of r. It looks for the event before the claim: if the event ends in between, the claim
// has its end by then.
func (d *Store) findState(ctx context.Context, r *Replayed, id string) error {
	there, err := d.stillStored(ctx, r, id)
	if err != nil {
		return err
	}
	m, err := stored.Get(ctx, d.js.Conn(), resources.BucketStream(events.BucketAttempts),
		stored.Request{Last: claimSubject(r.Owner, id)})
	if err != nil && !errors.Is(err, stored.ErrNone) {
		return err
	}
	var end *replayEnd
	claimed := err == nil
	if claimed {
		_, end = parseClaim(m.Data)
	}
	switch {
	case end != nil:
		r.State, r.Ended, r.Reason, r.Message, r.Dead = end.State, end.At, end.Reason, end.Message, end.Letter
	case there && claimed:
		r.State = ReplayRunning
	case there:
		r.State = ReplayWaiting
	case claimed:
		r.State = ReplayPutOff
	default:
		r.State = ReplayUnknown
	}
	return nil
}

// stillStored reports whether the stream of events has r's event. A stream that was created again has another event
// under its number.
func (d *Store) stillStored(ctx context.Context, r *Replayed, id string) (bool, error) {
	m, err := stored.Get(ctx, d.js.Conn(), events.StreamEvents, stored.Request{Seq: r.seq})
	if errors.Is(err, stored.ErrNone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	is, _, _ := events.ParseReplayMark(m.Header.Get(events.HeaderReplay))
	return is == id, nil
}
