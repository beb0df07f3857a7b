package storage

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

const (
	// nearlyFull, in percent, is how full a stream must be to be logged, and reportAgain is how often it is logged.
	nearlyFull, reportAgain = 80, time.Minute
	// manySubjects is the maximum number of subjects of a stream for which its owners are counted.
	manySubjects = 1 << 12
)

// mayReport reports whether to log about what: it was not logged recently. It notes that it is logged now. Only Run
// calls it.
func (u *Usage) mayReport(what string) bool {
	now := time.Now()
	for other, at := range u.reported {
		if now.Sub(at) > reportAgain {
			delete(u.reported, other)
		}
	}
	if _, told := u.reported[what]; told {
		return false
	}
	u.reported[what] = now
	return true
}

// report logs streams that are nearly full or that nats-server does not write.
func (u *Usage) report(ctx context.Context) {
	for _, f := range u.streams {
		failed := f.failure(u.nc)
		if failed != nil && u.mayReport("writes of "+f.name) {
			u.log.Error().Str("stream", f.name).Str("error", failed.Detail).Str("do", stored.Advice).
				Msg("nats-server stores nothing there any more")
		}
	}
	u.Reserved.report(u)
	for _, f := range u.all() {
		bytes, limit := f.bytes.Load(), f.limit.Load()
		if f.spare || limit == 0 || bytes < limit/100*nearlyFull || !u.mayReport(f.name) {
			continue
		}
		line := u.log.Warn().Str("stream", f.name).Uint64("bytes", bytes).Uint64("limit", limit)
		if owner, n := u.fullest(ctx, f.name); owner != "" {
			line = line.Str("owner", owner).Uint64("messages", n)
		}
		line.Msg("nearly full: when it is, nothing more is stored there; the owner that has the most messages in it is named")
	}
}

// fullest returns the owner with the most messages in the stream of events or of parked events, and their number. It
// returns "" when there are very many subjects.
func (u *Usage) fullest(ctx context.Context, name string) (owner string, n uint64) {
	var filter string
	var ownerOf func(subject string) (owner string, ok bool)
	switch name {
	case events.StreamEvents:
		filter, ownerOf = u.cfg.Prefix.AllStored(), func(subject string) (string, bool) {
			_, _, owner, _, ok := u.cfg.Prefix.ParseStored(subject)
			return owner, ok
		}
	case events.StreamParked:
		filter, ownerOf = u.cfg.Prefix.AllParked(), func(subject string) (string, bool) {
			owner, _, _, ok := u.cfg.Prefix.ParseParked(subject)
			return owner, ok
		}
	default:
		return "", 0
	}
	stream, err := u.js.Stream(ctx, name)
	if err != nil || stream.CachedInfo().State.NumSubjects > manySubjects { // publishers can create any number
		return "", 0
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return "", 0
	}
	counts := map[string]uint64{}
	for subject, of := range info.State.Subjects {
		if o, ok := ownerOf(subject); ok && events.ValidName(o) {
			if counts[o] += of; counts[o] > n {
				owner, n = o, counts[o]
			}
		}
	}
	return owner, n
}

// counters returns the counters of messages that found no room, and of bytes that were removed to make room.
func counters() (noRoom, dropped *prometheus.CounterVec) {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pinwheel_storage_refused_total", Help: "Messages that JetStream had no room for, by stream; account: a message of a few bytes that is stored to find out.",
		}, []string{"stream"}), prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pinwheel_stored_dropped_bytes_total", Help: "Bytes of the oldest messages of owners that had more stored than their share, removed by this process, by stream.",
		}, []string{"stream"})
}

var (
	storedBytes = prometheus.NewDesc("pinwheel_stored_bytes", "Bytes in each stream; account: in all of the account.", []string{"stream"},
		nil)
	storedFails = prometheus.NewDesc("pinwheel_storage_failed", "1 while nats-server stores nothing in the stream because a write failed, as on a full disk, else 0.",
		[]string{"stream"}, nil)
	storedLimit = prometheus.NewDesc("pinwheel_stored_bytes_limit", "What pinwheel_stored_bytes may be. It is missing for an account that only the server limits.",
		[]string{"stream"}, nil)
)

// Describe implements prometheus.Collector.
func (u *Usage) Describe(to chan<- *prometheus.Desc) {
	to <- storedBytes
	to <- storedLimit
	to <- storedFails
	u.Reserved.describe(to)
	u.refusals.Describe(to)
	u.dropped.Describe(to)
}

// Collect implements prometheus.Collector.
func (u *Usage) Collect(to chan<- prometheus.Metric) {
	for _, f := range u.all() {
		to <- prometheus.MustNewConstMetric(storedBytes, prometheus.GaugeValue, float64(f.bytes.Load()), f.name)
		if f != u.account {
			failed := 0.0
			if f.failure(u.nc) != nil {
				failed = 1
			}
			to <- prometheus.MustNewConstMetric(storedFails, prometheus.GaugeValue, failed, f.name)
		}
		if limit := f.limit.Load(); limit > 0 {
			to <- prometheus.MustNewConstMetric(storedLimit, prometheus.GaugeValue, float64(limit), f.name)
		}
	}
	u.Reserved.collect(to)
	u.refusals.Collect(to)
	u.dropped.Collect(to)
}
