package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
)

// headerObjectBytes is the header of a stored record whose code is in the object store: how many bytes that object has.
// The fleet's user writes it. So what an owner has stored is known from headers alone.
const headerObjectBytes = "Pinwheel-Object-Bytes"

// maxRemovedNames is how many names of removed workers an owner may leave behind, beside those of workers. The bucket
// keeps a marker of each.
const maxRemovedNames = 1000

// usageWait bounds the wait for one message while usage is counted.
const usageWait = 5 * time.Second

// Usage is what is stored for an owner.
type Usage struct {
	Workers int   // that are not removed
	Names   int   // of these, and of removed ones
	Bytes   int64 // of all kept versions, with their source maps and manifests. See UsageOf
}

// QuotaError says that a worker is not deployed because its owner may not have that much.
type QuotaError struct{ Text string }

func (e *QuotaError) Error() string { return e.Text }

// InvalidError says that a request asks for something that is not allowed, whoever asks.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap is what is wrong.
func (e *InvalidError) Unwrap() error { return e.Err }

// UsageOf counts what is stored for an owner. It reads headers only. Of code in the object store that an earlier
// release stored, it counts the record.
func UsageOf(ctx context.Context, s *Store, owner string) (u Usage, err error) {
	if err := events.CheckName("owner", owner); err != nil {
		return u, err
	}
	stream := "KV_" + s.cfg.Bucket
	fail := func(err error) (Usage, error) {
		return Usage{}, fmt.Errorf("count what owner %s has stored: %w", owner, err)
	}
	reader, err := s.js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		FilterSubject: s.cfg.subject(owner, "*"), DeliverPolicy: jetstream.DeliverAllPolicy, HeadersOnly: true,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: 2 * usageWait,
	})
	if err != nil {
		return fail(err)
	}
	defer func() { _ = s.js.DeleteConsumer(context.WithoutCancel(ctx), stream, reader.CachedInfo().Name) }() // the server would remove it anyway
	names := map[string]bool{}                                                                               // by subject: whether the newest entry is a version
	if reader.CachedInfo().NumPending == 0 {
		return u, nil
	}
	it, err := reader.Messages(jetstream.PullMaxMessages(1000))
	if err != nil {
		return fail(err)
	}
	defer it.Stop()
	for {
		limited, cancel := context.WithTimeout(ctx, usageWait)
		m, err := it.Next(jetstream.NextContext(limited))
		cancel()
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			break // the entries that were pending are gone
		}
		if err != nil {
			return fail(err)
		}
		meta, err := m.Metadata()
		if err != nil {
			return fail(err)
		}
		names[m.Subject()] = m.Headers().Get("KV-Operation") == ""
		u.Bytes += entryBytes(m.Headers())
		if meta.NumPending == 0 {
			break
		}
	}
	u.Names = len(names)
	for _, there := range names {
		if there {
			u.Workers++
		}
	}
	return u, nil
}

// entryBytes is the size of an entry and of the object that it refers to.
func entryBytes(h nats.Header) (n int64) {
	for _, name := range []string{"Nats-Msg-Size", headerObjectBytes} {
		v, err := strconv.ParseInt(h.Get(name), 10, 64)
		if err == nil {
			n += max(v, 0)
		}
	}
	return n
}

// subject is where the entries of a worker are stored.
func (c Config) subject(owner, name string) string {
	return "$KV." + c.Bucket + "." + key(owner, name)
}

// checkQuota returns a *QuotaError if the owner may not have w too.
func checkQuota(ctx context.Context, s *Store, w *events.Worker, p events.Policy, k kept) error {
	u, err := UsageOf(ctx, s, w.Owner)
	if err != nil {
		return err
	}
	workers, most := cmp.Or(p.MaxWorkers, events.DefaultMaxWorkers), int64(cmp.Or(p.CodeBytes, events.DefaultCodeBytes))
	size := int64(len(w.Code) + len(w.SourceMap))
	var text string
	switch {
	case k.entries == 0 && u.Workers >= workers:
		text = fmt.Sprintf("owner %s has %d workers, and may have %d (maxWorkers): remove one with 'pinwheel workers rm', or ask the fleet's operators for more", w.Owner, u.Workers, workers)
	case k.revision == 0 && u.Names >= workers+maxRemovedNames:
		text = fmt.Sprintf("owner %s has used %d names of workers, with those of removed ones: use one of these again", w.Owner, u.Names)
	case u.Bytes+size > most:
		text = fmt.Sprintf("the versions of owner %s have %d bytes, this one has %d, and all may have %d (codeBytes): remove a worker with 'pinwheel workers rm', or ask the fleet's operators for more", w.Owner, u.Bytes, size, most)
	default:
		return nil
	}
	return &QuotaError{fmt.Sprintf("%s is refused: %s", w.Target(), text)}
}
