package resources

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Change is a difference that 'pinwheel resources apply' would remove.
type Change struct {
	Resource Resource
	Difference
	Lost  string // what the change would lose; "" = nothing
	Final bool   // JetStream cannot change the field in place
}

// Removed is about how many messages of a stream the fleet itself would remove if the stream had that limit of bytes.
// owners has the number of messages of each owner. shared is false when the fleet removes nothing in the stream.
type Removed func(stream string, owners map[string]uint64, bytes, limit uint64) (messages uint64, shared bool)

// Plan compares resources with what the server has. It leaves out those that are missing. The error is a *PrefixError
// when streams belong to another fleet.
func Plan(ctx context.Context, js jetstream.JetStream, wanted []Resource, removed Removed) (list []Change, err error) {
	for _, want := range wanted {
		f, err := Look(ctx, js, want)
		switch {
		case err != nil:
			return nil, err
		case f.Foreign != nil:
			return nil, f.Foreign
		case f.Newer():
			return nil, fmt.Errorf("%s was created by a newer Pinwheel: use its binary", want)
		}
		for _, d := range f.Drift {
			c := Change{Resource: want, Difference: d, Final: d.immutable()}
			switch {
			case c.Final:
			case f.Info != nil:
				c.Lost = lostByConsumer(d, f.Info.Config, *want.Consumer)
			case f.Stream != nil:
				if c.Lost, err = (&losses{js, f.Stream, removed}).of(ctx, d, f.target(want)); err != nil {
					return nil, fmt.Errorf("%s: what would be lost is not known: %w", want, err)
				}
			}
			list = append(list, c)
		}
	}
	return list, nil
}

// target is what the stream of a resource should be.
func (f Finding) target(want Resource) jetstream.StreamConfig {
	switch {
	case want.Bucket != nil:
		return bucketTarget(f.Stream.Config, *want.Bucket)
	case want.Objects != nil:
		return objectsTarget(f.Stream.Config, *want.Objects)
	}
	return completeStream(f.Stream.Config, *want.Stream)
}

func lostByConsumer(d Difference, have, want jetstream.ConsumerConfig) string {
	if d.Field == "ack_wait" && want.AckWait < have.AckWait {
		return "processes that run renew leases for " + have.AckWait.String() + ": long events may run twice until each has been restarted"
	}
	return ""
}

// losses finds out what changes of a stream lose.
type losses struct {
	js      jetstream.JetStream
	info    *jetstream.StreamInfo
	removed Removed
}

func (l *losses) of(ctx context.Context, d Difference, want jetstream.StreamConfig) (string, error) {
	have := l.info.Config
	switch d.Field {
	case "max_bytes":
		return l.byBytes(ctx, want)
	case "max_age":
		if want.MaxAge > 0 && (have.MaxAge == 0 || want.MaxAge < have.MaxAge) {
			return l.byAge(ctx, want.MaxAge)
		}
	case "max_msgs":
		if want.MaxMsgs > 0 && l.info.State.Msgs > uint64(want.MaxMsgs) && want.Discard == jetstream.DiscardOld {
			return l.messages(l.info.State.Msgs - uint64(want.MaxMsgs)), nil
		}
	case "max_msgs_per_subject":
		return l.bySubject(ctx, want.MaxMsgsPerSubject)
	case "num_replicas":
		if want.Replicas < have.Replicas {
			return fmt.Sprintf("%d of %d copies: it survives the loss of fewer servers", have.Replicas-want.Replicas, have.Replicas), nil
		}
	case "discard":
		if want.Discard == jetstream.DiscardOld {
			return "when it is full, its oldest messages are removed; until now, new ones are refused", nil
		}
	case "duplicate_window":
		if want.Duplicates < have.Duplicates {
			return "message ids older than " + want.Duplicates.String() + ": such a message can be stored again", nil
		}
	case "subjects":
		gone := slices.DeleteFunc(slices.Clone(have.Subjects),
			func(s string) bool { return slices.Contains(want.Subjects, s) })
		if len(gone) > 0 {
			return "messages to " + strings.Join(gone, ", ") + " are no longer stored", nil
		}
	}
	return "", nil
}

// messages is n messages of those that are stored, in words.
func (l *losses) messages(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d messages", n, l.info.State.Msgs)
}

func (l *losses) byBytes(ctx context.Context, want jetstream.StreamConfig) (string, error) {
	state, name := l.info.State, l.info.Config.Name
	if want.MaxBytes <= 0 || l.info.Config.MaxBytes > 0 && l.info.Config.MaxBytes <= want.MaxBytes {
		return "", nil
	}
	limit := uint64(want.MaxBytes)
	if want.Discard == jetstream.DiscardOld {
		over := state.Bytes - min(state.Bytes, limit)
		return l.messages((over*state.Msgs + max(1, state.Bytes) - 1) / max(1, state.Bytes)), nil
	}
	if l.removed != nil {
		subjects, err := l.subjects(ctx)
		if err != nil {
			return "", err
		}
		owners := map[string]uint64{}
		for subject, n := range subjects {
			if tokens := strings.SplitN(subject, ".", 4); len(tokens) > 2 {
				owners[tokens[2]] += n
			}
		}
		if n, shared := l.removed(name, owners, state.Bytes, limit); shared {
			return l.messages(n), nil
		}
	}
	if state.Bytes >= limit {
		return "nothing that is stored; it is full then, and refuses new messages", nil
	}
	return "", nil
}

func (l *losses) bySubject(ctx context.Context, most int64) (string, error) {
	if most <= 0 {
		return "", nil
	}
	subjects, err := l.subjects(ctx)
	n := uint64(0)
	for _, has := range subjects {
		n += has - min(has, uint64(most))
	}
	return l.messages(n), err
}

// subjects are the subjects of the stored messages, with the number of each.
func (l *losses) subjects(ctx context.Context) (map[string]uint64, error) {
	s, err := l.js.Stream(ctx, l.info.Config.Name)
	if err != nil {
		return nil, err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
}

// byAge counts with a consumer that begins at the first message that stays.
func (l *losses) byAge(ctx context.Context, age time.Duration) (string, error) {
	if l.info.State.Msgs == 0 {
		return "", nil
	}
	from := l.info.TimeStamp.Add(-age)
	c, err := l.js.CreateConsumer(ctx, l.info.Config.Name, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &from, AckPolicy: jetstream.AckNonePolicy,
		HeadersOnly: true,
		Replicas:    1, MemoryStorage: true, InactiveThreshold: 5 * time.Second,
	})
	if err != nil {
		return "", err
	}
	info := c.CachedInfo()
	stays := info.NumPending
	_ = l.js.DeleteConsumer(ctx, info.Stream, info.Name) // else it ends by itself
	return l.messages(l.info.State.Msgs - min(l.info.State.Msgs, stays)), nil
}
