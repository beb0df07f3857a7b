package consumer

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/stored"
)

const (
	// nearlyFull, in percent, is how full a stream is of which people are told, and tellAgain how often they are.
	nearlyFull, tellAgain = 80, time.Minute
)

// mayTell reports whether people have not been told of something lately; then they are now. For storedLoop.
func (c *Consumer) mayTell(what string) bool {
	now := time.Now()
	for other, at := range c.usage.told {
		if now.Sub(at) > tellAgain {
			delete(c.usage.told, other)
		}
	}
	if _, told := c.usage.told[what]; told {
		return false
	}
	c.usage.told[what] = now
	return true
}

// tellStored tells people of streams that are nearly full.
func (c *Consumer) tellStored(ctx context.Context) {
	for _, f := range c.usage.streams {
		failed := f.failure(c.nc)
		if failed != nil && c.mayTell("writes of "+f.name) {
			c.log.Error().Str("stream", f.name).Str("error", failed.Detail).Str("do", stored.Advice).Msg("nats-server stores nothing there any more")
		}
	}
	for _, f := range c.usage.all() {
		bytes, limit := f.bytes.Load(), f.limit.Load()
		if limit == 0 || bytes < limit/100*nearlyFull || !c.mayTell(f.name) {
			continue
		}
		line := c.log.Warn().Str("stream", f.name).Uint64("bytes", bytes).Uint64("limit", limit)
		if owner, n := c.fullest(ctx, f.name); owner != "" {
			line = line.Str("owner", owner).Uint64("messages", n)
		}
		line.Msg("nearly full: when it is, nothing more is stored there; the owner that has the most messages in it is named")
	}
}

// fullest is the owner that has the most messages in a stream, of events or of parked ones, and how many those are. It is not looked for where there are very many subjects.
func (c *Consumer) fullest(ctx context.Context, name string) (owner string, n uint64) {
	var filter string
	var ownerOf func(subject string) (owner string, ok bool)
	switch name {
	case StreamEvents:
		filter, ownerOf = c.cfg.Prefix.AllStored(), func(subject string) (string, bool) {
			_, _, owner, _, ok := c.cfg.Prefix.ParseStored(subject)
			return owner, ok
		}
	case StreamParked:
		filter, ownerOf = c.cfg.Prefix.AllParked(), c.cfg.Prefix.ParseParked
	default:
		return "", 0
	}
	stream, err := c.js.Stream(ctx, name)
	if err != nil || stream.CachedInfo().State.NumSubjects > overtakeSubjects { // a publisher makes as many as it likes
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

// storedCounters count what found no room, and what was removed to make some.
func storedCounters() (noRoom, dropped *prometheus.CounterVec) {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pinwheel_storage_refused_total", Help: "Messages that JetStream had no room for, by stream; account: a message of a few bytes that is stored to find out.",
		}, []string{"stream"}), prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "pinwheel_stored_dropped_bytes_total", Help: "Bytes of the oldest messages of owners that had more stored than their share, removed by this process, by stream.",
		}, []string{"stream"})
}

// usageGauges tells how full the streams were when it was looked last.
type usageGauges struct {
	*usage
	nc *nats.Conn
}

var (
	storedBytes = prometheus.NewDesc("pinwheel_stored_bytes", "Bytes in each stream; account: in all of the account.", []string{"stream"}, nil)
	storedFails = prometheus.NewDesc("pinwheel_storage_failed", "1 while nats-server stores nothing in the stream because a write failed, as on a full disk, else 0.", []string{"stream"}, nil)
	storedLimit = prometheus.NewDesc("pinwheel_stored_bytes_limit", "What pinwheel_stored_bytes may be. Nothing is told of an account that is limited by the server only.", []string{"stream"}, nil)
)

// Describe is prometheus.Collector's.
func (g usageGauges) Describe(to chan<- *prometheus.Desc) {
	to <- storedBytes
	to <- storedLimit
	to <- storedFails
}

// Collect is prometheus.Collector's.
func (g usageGauges) Collect(to chan<- prometheus.Metric) {
	for _, f := range g.all() {
		to <- prometheus.MustNewConstMetric(storedBytes, prometheus.GaugeValue, float64(f.bytes.Load()), f.name)
		if f != g.account {
			failed := 0.0
			if f.failure(g.nc) != nil {
				failed = 1
			}
			to <- prometheus.MustNewConstMetric(storedFails, prometheus.GaugeValue, failed, f.name)
		}
		if limit := f.limit.Load(); limit > 0 {
			to <- prometheus.MustNewConstMetric(storedLimit, prometheus.GaugeValue, float64(limit), f.name)
		}
	}
}
