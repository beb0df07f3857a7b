package sources

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// Store lists and resets the consumers that the fleet has at sources.
type Store struct {
	Conns    Conns
	Replicas int
	Paid     func(requests, size int) // is told what a list asks NATS, and the bytes of messages; nil: nobody is
}

// Progress is how far a source is.
type Progress struct {
	Record
	Pending  uint64    // messages that wait at the source
	Unacked  int       // that are on their way to be events
	Oldest   time.Time // when the first of those that wait was stored; zero = none waits, or it is not known
	Problem  string    // why it is not known; "" = it is
	NoStream bool      // the problem is that its stream is not there
}

// List returns at most limit sources of an owner, or with "" of all, apart from core subjects: those whose consumer
// comes after a name, in the order of these names. NATS is asked about no others. With oldest it also looks how long
// messages have waited. After listTime the page ends, and after oldestTime no Oldest is looked for. more reports
// whether there are more.
func (s Store) List(ctx context.Context, owner, after string, limit int, oldest bool) (page []Progress, more bool,
	err error) {
	b, err := s.open(ctx)
	if err != nil {
		return nil, false, err
	}
	pattern := ">"
	if owner != "" {
		pattern = owner + ".>"
	}
	all, err := b.list(ctx, pattern)
	if err != nil {
		return nil, false, err
	}
	all = slices.DeleteFunc(all, func(r Record) bool { return r.Consumer() <= after })
	slices.SortFunc(all, func(a, b Record) int { return strings.Compare(a.Consumer(), b.Consumer()) })
	if more = len(all) > limit; more {
		all = all[:limit]
	}
	room, began := mostRead, time.Now()
	page = make([]Progress, len(all))
	for i, r := range all {
		took := time.Since(began)
		if took > listTime && i > 0 {
			return page[:i], true, nil
		}
		page[i].Record = r
		s.pay(1, 0)
		info, err := s.info(ctx, r)
		if err != nil {
			page[i].Problem, page[i].NoStream = err.Error(), errors.Is(err, jetstream.ErrStreamNotFound)
			continue
		}
		page[i].Pending, page[i].Unacked = info.NumPending, info.NumAckPending
		if oldest && took < oldestTime && r.Connection == "" && info.NumPending > 0 {
			page[i].Oldest = s.oldest(ctx, r, info.Delivered.Stream+1, &room)
		}
	}
	return page, more, nil
}

// pay tells Paid.
func (s Store) pay(requests, size int) {
	if s.Paid != nil {
		s.Paid(requests, size)
	}
}

const (
	// listTime and oldestTime bound how long a list takes. Who asks waits some seconds for the answer.
	listTime   = 4 * time.Second
	oldestTime = 2 * time.Second
	// mostRead is how many bytes of messages a list reads, to see how old they are.
	mostRead = 8 << 20
	// mostFilters is how many filters a source has at most whose messages a list reads.
	mostFilters = 8
)

// oldest is when the first message was stored from a sequence on that a source brings, or zero if that is not known.
// NATS tells it with the whole message; room is how many bytes may still be read. At the connection of the fleet alone:
// at others its user need not have the right to read a message.
func (s Store) oldest(ctx context.Context, r Record, from uint64, room *int) (first time.Time) {
	filters := r.Filters
	if len(filters) == 0 {
		filters = []string{">"}
	}
	for _, filter := range filters {
		if *room <= 0 || len(filters) > mostFilters {
			return time.Time{}
		}
		m, err := stored.Get(ctx, s.Conns[""].NC, r.Stream, stored.Request{Seq: from, Next: filter})
		s.pay(1, 0)
		if errors.Is(err, stored.ErrNone) {
			continue
		}
		if err != nil {
			return time.Time{}
		}
		*room -= len(m.Data)
		s.pay(0, len(m.Data))
		if first.IsZero() || m.Time.Before(first) {
			first = m.Time
		}
	}
	return first
}

func (s Store) open(ctx context.Context) (records, error) {
	k := &resources.Reconciler{JS: s.Conns[""].JS, Log: zerolog.Nop(), OnlyMissing: true}
	return openRecords(ctx, k, max(1, s.Replicas))
}

// stream returns the stream of a record.
func (s Store) stream(ctx context.Context, r Record) (jetstream.Stream, error) {
	conn := s.Conns[r.Connection]
	if conn == nil {
		return nil, fmt.Errorf("there is no connection %q here", r.Connection)
	}
	return conn.JS.Stream(ctx, r.Stream)
}

func (s Store) info(ctx context.Context, r Record) (*jetstream.ConsumerInfo, error) {
	stream, err := s.stream(ctx, r)
	if err != nil {
		return nil, err
	}
	has, err := stream.Consumer(ctx, r.Consumer())
	if err != nil {
		return nil, err
	}
	return has.CachedInfo(), nil
}

// ErrNoSource says that a worker has no such source.
var ErrNoSource = errors.New("the worker has no such source of a stream, a bucket or an object store")

// Reset has sources of a worker begin at another message: the one with this number, or with a negative one all. It
// returns how many messages come then, by source. With dryRun it changes nothing. Events that are stored already run
// nevertheless.
func (s Store) Reset(ctx context.Context, owner, worker string, n int, to workers.Start,
	dryRun bool) ([]Progress, error) {
	b, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	all, err := b.list(ctx, owner+"."+worker+".*")
	if err != nil {
		return nil, err
	}
	var chosen []Record
	for _, r := range all {
		if r.Removed.IsZero() && (n < 0 || r.N == n) {
			chosen = append(chosen, r)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%s/%s: %w", owner, worker, ErrNoSource)
	}
	var done []Progress
	for _, r := range chosen {
		count, err := s.count(ctx, r, to)
		if err != nil {
			return done, fmt.Errorf("source %d: %w", r.N, err)
		}
		next := Progress{Record: r, Pending: count}
		if !dryRun {
			if next.Record, err = s.replace(ctx, b, r, to, all); err != nil {
				return done, fmt.Errorf("source %d: %w", r.N, err)
			}
			all = append(all, next.Record)
		}
		done = append(done, next)
	}
	return done, nil
}

// count counts the messages that a source would bring from a start.
func (s Store) count(ctx context.Context, r Record, to workers.Start) (uint64, error) {
	stream, err := s.stream(ctx, r)
	if err != nil {
		return 0, err
	}
	if stream.CachedInfo().Config.Retention != jetstream.LimitsPolicy {
		return 0, fmt.Errorf("stream %s removes what is acked: nothing is there to come again", r.Stream)
	}
	r.Start, r.Floor, r.Made = to, 0, time.Now()
	cfg := consumerOf(r)
	cfg.Durable, cfg.Name, cfg.Metadata = "", "pinwheel-count-"+rand.Text(), nil
	cfg.AckPolicy, cfg.AckWait, cfg.MaxAckPending = jetstream.AckNonePolicy, 0, 0
	cfg.MemoryStorage, cfg.InactiveThreshold, cfg.Replicas = true, 10*time.Second, 1
	has, err := stream.CreateConsumer(ctx, cfg)
	if err != nil {
		return 0, err
	}
	_ = stream.DeleteConsumer(ctx, cfg.Name) // the server does it soon
	return has.CachedInfo().NumPending, nil
}

// replace gives a source another consumer, and so another number: what processes still bring by the one before is not
// mistaken for what comes again.
func (s Store) replace(ctx context.Context, b records, r Record, to workers.Start, all []Record) (Record, error) {
	stream, err := s.stream(ctx, r)
	if err != nil {
		return r, err
	}
	next := r
	next.ID, next.Start, next.Made, next.Floor, next.revision = rand.Text(), to, time.Now().UTC(), 0, 0
	next.Created = stream.CachedInfo().Created.UnixNano()
	for next.N = 0; slices.ContainsFunc(all, func(o Record) bool { return o.N == next.N }); {
		next.N++
	}
	if next, err = b.put(ctx, next); err != nil {
		return r, err
	}
	if _, _, err = ensure(ctx, stream, next); err != nil {
		return next, err
	}
	return next, discard(ctx, s.Conns[r.Connection], b, r)
}

// ParseStart reads where a source is to begin: new, all, a sequence or a time.
func ParseStart(text string) (workers.Start, error) {
	start := workers.Start{From: text}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		start = workers.Start{Sequence: n}
	} else if _, err := time.Parse(time.RFC3339Nano, text); err == nil {
		start = workers.Start{Time: text}
	}
	probe := workers.Source{Stream: "S", Start: start}
	if text == "" || start.From == "" && start.Sequence == 0 && start.Time == "" || probe.Validate() != nil {
		return start, fmt.Errorf("%.60q: it is new, all, a sequence, or a time in RFC 3339 like 2026-01-02T15:04:05Z", text)
	}
	return start, nil
}
