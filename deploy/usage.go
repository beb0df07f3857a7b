package deploy

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/stored"
)

// headerObjectBytes is the header of a stored record whose code is in the object store: how many bytes that object has.
// The fleet's user writes it. So what an owner has stored is known from headers alone.
const headerObjectBytes = "Pinwheel-Object-Bytes"

// maxRemovedNames is how many names of removed workers an owner may leave behind, beside those of workers. The bucket
// keeps a marker of each.
const maxRemovedNames = 1000

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
	scan, err := stored.Headers(ctx, s.js.Conn(), stream, []string{s.cfg.subject(owner, "*")}, false)
	if err != nil {
		return fail(err)
	}
	names := map[string]bool{} // by subject: whether the newest entry is a version
	for m, err := range scan.Messages(ctx) {
		if err != nil {
			return fail(err)
		}
		names[m.Subject] = m.Header.Get("KV-Operation") == ""
		u.Bytes += entryBytes(m.Header)
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
