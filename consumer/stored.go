package consumer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/assets"
	"github.com/pinwheel-run/pinwheel/internal/stored"
)

const (
	// storedLook is how often a process looks how full the streams are, and storedPause the least time between two looks.
	storedLook, storedPause = 5 * time.Second, 100 * time.Millisecond
	// storedWait is how long a look may take.
	storedWait = 30 * time.Second
	// storedSoon is the part of a stream after which it is looked at again at once, when the fleet stored so much.
	storedSoon = 32
	// refusedFor is how long it counts that JetStream had no room for a message.
	refusedFor = 15 * time.Second
	// probeWait is how long the answer to a message may take that is stored to find out, and silentFor for how long there may be none.
	probeWait, silentFor = 5 * time.Second, 12 * time.Second
	// accountStorage stands for all streams of the account together, and whatever the server stores.
	accountStorage = "account"
)

// usage is what is known of how full the streams are, and keeps each owner to its share of them.
type usage struct {
	now     chan struct{} // look at once
	streams []*fullness
	events  *fullness // of them
	parked  *fullness // of them
	account *fullness // its limit is 0 where only the server has one
	shared  []*shared
	book    book
	told    map[string]time.Time // of what people were told, and when; of storedLoop

	mu      sync.Mutex
	refused map[string]noRoomAt // by stream
	silent  time.Time           // since when nothing that was stored to find out has been answered; zero: it was
	unheard error               // why
}

// fullness is how full a stream is.
type fullness struct {
	name         string
	bytes, limit atomic.Uint64
	messages     atomic.Uint64
	added        atomic.Uint64 // bytes that this process stored since it looked last
	broken       atomic.Pointer[broken]
}

// noRoomAt is when JetStream had no room for a message last.
type noRoomAt struct {
	at  time.Time
	err error
}

// used is about how many bytes there are: as many as when it was looked last, and what was stored since, of which each of so many processes takes
// the others to have stored as much as itself.
func (f *fullness) used(processes int64) uint64 {
	return f.bytes.Load() + f.added.Load()*uint64(max(1, processes)) //nolint:gosec // not negative
}

// free is how many bytes there are free; of a stream without a limit that is as good as any number.
func (f *fullness) free(processes int64) uint64 {
	limit, used := f.limit.Load(), f.used(processes)
	if limit == 0 {
		return 1 << 62
	}
	return limit - min(limit, used)
}

// full reports whether hardly any message fits any more.
func (f *fullness) full() bool {
	limit := f.limit.Load()
	return limit > 0 && f.bytes.Load() >= limit-limit/100
}

func newUsage(cfg Config) *usage {
	s := &usage{now: make(chan struct{}, 1), account: &fullness{name: accountStorage}, told: map[string]time.Time{}, refused: map[string]noRoomAt{}}
	for _, name := range []string{
		StreamEvents, StreamParked, StreamBodies, StreamDead, StreamResults, StreamSchedules, assets.BucketStream(BucketAttempts),
	} {
		s.streams = append(s.streams, &fullness{name: name})
	}
	s.events, s.parked = s.of(StreamEvents), s.of(StreamParked)
	for _, stream := range []string{StreamEvents, StreamParked, StreamSchedules} { // until it was looked
		s.of(stream).limit.Store(uint64(cfg.MaxBytes)) //nolint:gosec // at least 1 MiB
	}
	s.shared = []*shared{
		{fullness: s.of(StreamDead), owned: cfg.Prefix.DeadOwner}, {fullness: s.of(StreamResults), owned: cfg.Prefix.ResultOwner},
		{fullness: s.of(StreamBodies), owned: cfg.Prefix.BodyOwner},
	}
	return s
}

// all are the streams, and the account.
func (s *usage) all() []*fullness { return append(slices.Clone(s.streams), s.account) }

// of is what is known of a stream.
func (s *usage) of(stream string) *fullness {
	return s.streams[slices.IndexFunc(s.streams, func(f *fullness) bool { return f.name == stream })]
}

// storedLoop looks how full the streams are, and has owners that have more stored than there is free give up their oldest.
func (c *Consumer) storedLoop(life context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-timer.C:
		case <-c.usage.now:
		}
		if c.nc.IsConnected() {
			ctx, cancel := context.WithTimeout(life, storedWait)
			if err := c.lookAtStored(ctx); err != nil && life.Err() == nil {
				c.log.Debug().Err(err).Msg("how full the streams are is not known; trying again")
			}
			cancel()
		}
		timer.Reset(storedLook + rand.N(storedLook/5)) // processes need not look at once
		select {                                       // what happens at once is looked at once
		case <-life.Done():
			return
		case <-time.After(storedPause):
		}
	}
}

// lookAtStored looks at everything. What cannot be looked at now is left to the next time.
func (c *Consumer) lookAtStored(ctx context.Context) error {
	var errs []error
	began := time.Now()
	infos := map[string]*jetstream.StreamInfo{}
	for _, f := range c.usage.streams {
		added := f.added.Load()
		s, err := c.js.Stream(ctx, f.name)
		if err != nil {
			errs = append(errs, fmt.Errorf("stream %s: %w", f.name, err))
			continue
		}
		infos[f.name] = s.CachedInfo()
		f.looked(infos[f.name], added, c.cfg)
		errs = append(errs, c.lookAtWrites(ctx, f, s.CachedInfo()))
	}
	errs = append(errs, c.lookAtAccount(ctx), c.probe(ctx))
	for _, s := range c.usage.shared {
		if info := infos[s.name]; info != nil {
			errs = append(errs, c.keepShares(ctx, s, info))
		}
	}
	errs = append(errs, c.countBooked(ctx))
	c.tellStored(ctx)
	c.usage.forgetRefusals(began)
	return errors.Join(errs...)
}

// forgetRefusals forgets that streams had no room before a time, if they have some now.
func (s *usage) forgetRefusals(before time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.streams {
		if limit := f.limit.Load(); s.refused[f.name].at.Before(before) && limit > 0 && f.bytes.Load() < limit-limit/10 {
			delete(s.refused, f.name)
		}
	}
}

// looked notes what JetStream says of a stream, when so many bytes had been added.
func (f *fullness) looked(info *jetstream.StreamInfo, added uint64, cfg Config) {
	limit := max(0, info.Config.MaxBytes)
	if f.name == StreamSchedules {
		limit = cfg.MaxBytes // JetStream lets it have none; see waiting.go
	}
	f.added.Add(-added)
	f.bytes.Store(info.State.Bytes)
	f.messages.Store(info.State.Msgs)
	f.limit.Store(uint64(limit)) //nolint:gosec // not negative
}

// lookAtAccount asks what all streams of the account take, and may take.
func (c *Consumer) lookAtAccount(ctx context.Context) error {
	info, err := c.js.AccountInfo(ctx)
	if err != nil {
		return fmt.Errorf("account: %w", err)
	}
	tier := info.Tier
	if t, ok := info.Tiers[fmt.Sprintf("R%d", max(1, c.cfg.Replicas))]; ok {
		tier = t
	}
	c.usage.account.bytes.Store(tier.Store)
	c.usage.account.limit.Store(uint64(max(0, tier.Limits.MaxStore))) //nolint:gosec // not negative
	return nil
}

// probe stores a message of a few bytes, the same for all processes, which is no key of the bucket. Nobody is told the limits of the server but who stores.
func (c *Consumer) probe(ctx context.Context) error {
	m := &nats.Msg{Subject: "$KV." + BucketAttempts + ".probe", Header: nats.Header{"KV-Operation": {"DEL"}}, Data: []byte(c.cfg.Node)}
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	asked := time.Now()
	_, err := c.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
	c.noRoom(accountStorage, err)
	c.usage.probed(asked, err)
	return err
}

// noRoom notes that JetStream had no room in a stream for a message, if that is what err says. When JetStream said nothing it is looked why. It may
// be called from any goroutine.
func (c *Consumer) noRoom(stream string, err error) {
	if stream != accountStorage && errors.Is(err, errNoAnswer) && c.usage.of(stream).failure(c.nc) == nil {
		signal(c.usage.now)
	}
	if !isFull(err) {
		return
	}
	c.usage.mu.Lock()
	c.usage.refused[stream] = noRoomAt{time.Now(), err}
	c.usage.mu.Unlock()
	c.metrics.noRoom.WithLabelValues(stream).Inc()
	if stream != accountStorage {
		signal(c.usage.now)
	}
}

// grew notes that this process stored so many bytes, or is about to. After very many it is looked at once how full the stream is.
func (c *Consumer) grew(f *fullness, size int) {
	added, each := f.added.Add(uint64(size)), f.limit.Load()/storedSoon/uint64(max(1, c.processes.Load())) //nolint:gosec // never negative
	if each > 0 && added/each != (added-uint64(size))/each {                                               //nolint:gosec // never negative
		signal(c.usage.now)
	}
}

// Storage says why something of the fleet cannot be stored now, or nil. It may be called from any goroutine.
func (c *Consumer) Storage() error {
	s := c.usage
	var errs []error
	for _, f := range s.all() {
		s.mu.Lock()
		r, refused := s.refused[f.name]
		s.mu.Unlock()
		failed := f.failure(c.nc)
		switch {
		case failed != nil:
			errs = append(errs, fmt.Errorf("storage: %w; %s", failed, stored.Advice))
		case f.full():
			errs = append(errs, fmt.Errorf("storage: %s is full, %d of %d bytes", f.name, f.bytes.Load(), f.limit.Load()))
		case refused && time.Since(r.at) < refusedFor:
			errs = append(errs, fmt.Errorf("storage: %s has no room: %w", f.name, r.err))
		}
	}
	return errors.Join(append(errs, s.unanswered())...)
}
