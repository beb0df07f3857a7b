package usage

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// makeRoom removes the oldest sums while more than seven eighths of the bucket are used, until three quarters are:
// first the hours of the oldest day that is added up, day by day, then the sums of the oldest day. Parts, and hours of
// days that are not added up, stay. So there is always room for what is counted now.
func (l *Ledger) makeRoom(ctx context.Context) error {
	stream, err := l.store.stream(ctx)
	if err != nil {
		return err
	}
	info := stream.CachedInfo()
	most := info.Config.MaxBytes
	if most <= 0 || info.State.Bytes <= uint64(most)/8*7 {
		return nil
	}
	for _, kind := range []string{"hour", "day"} {
		days, err := l.daysOf(ctx, stream, kind)
		if err != nil {
			return err
		}
		for _, day := range days {
			if err := remove(ctx, stream, kind+"."+day+".>"); err != nil {
				return err
			}
			l.cfg.Log.Warn().Str("bucket", Bucket).Str("kind", kind).Str("day", day).
				Msg("the bucket of the usage is nearly full: the oldest sums were removed")
			if info, err = stream.Info(ctx); err != nil || info.State.Bytes <= uint64(most)/4*3 {
				return err
			}
		}
	}
	return nil
}

func (s *Store) stream(ctx context.Context) (jetstream.Stream, error) {
	stream, err := s.js.Stream(ctx, resources.BucketStream(Bucket))
	return stream, usageError(err)
}

// remove removes keys without a marker for each, which would need room that a full bucket does not have.
func remove(ctx context.Context, stream jetstream.Stream, keys string) error {
	return stream.Purge(ctx, jetstream.WithPurgeSubject("$KV."+Bucket+"."+keys))
}

// daysOf are the days that are added up, and have keys of a kind. The oldest is the first.
func (l *Ledger) daysOf(ctx context.Context, stream jetstream.Stream, kind string) ([]string, error) {
	prefix := "$KV." + Bucket + "." + kind + "."
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return nil, err
	}
	days := map[string]bool{}
	for subject := range info.State.Subjects {
		text, _, _ := strings.Cut(strings.TrimPrefix(subject, prefix), ".")
		if day, err := time.Parse(dayFormat, text); err == nil && l.days[day] {
			days[text] = true
		}
	}
	return slices.Sorted(maps.Keys(days)), nil
}
