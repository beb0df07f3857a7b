package storage

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
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

const (
	// lookEvery is how often a process checks how full the streams are. lookPause is the minimum time between two
	// checks.
	lookEvery, lookPause = 5 * time.Second, 100 * time.Millisecond
	// lookWait is how long a check may take.
	lookWait = 30 * time.Second
	// Run checks again at once after the fleet has stored about 1/soonPart of a stream's limit.
	soonPart = 32
	// refusedFor is for how long a message that found no room in JetStream counts.
	refusedFor = 15 * time.Second
	// probeWait is how long the answer to a probe message may take. silentFor is for how long there may be no answer.
	probeWait, silentFor = 5 * time.Second, 12 * time.Second
	// accountStorage stands for all streams of the account together, including everything else that the server stores
	// for it.
	accountStorage = "account"
)

// Config says what a Usage watches.
type Config struct {
	Prefix   events.Subjects
	Node     string // names this process in a probe message
	MaxBytes int64  // of the streams of events, of parked events and of schedules, each
	Replicas int
	// RunHistory: there is a stream of the run history. When it is full, the fleet works all the same.
	RunHistory bool
}

// Usage knows how full the streams are. It keeps each owner to its share of them. Make it with New, start it with Run.
// Its exported methods may be called from any goroutine.
type Usage struct {
	cfg Config
	nc  *nats.Conn
	js  jetstream.JetStream
	log zerolog.Logger

	processes atomic.Int64  // of the fleet; 0 counts as 1
	now       chan struct{} // check at once
	streams   []*level
	events    *level // of them
	parked    *level // of them
	account   *level // its limit is 0 when only the server has one
	Reserved  Reservation
	shared    []*shared
	book      book
	reported  map[string]time.Time // what was reported, and when; Run's

	refusals, dropped *prometheus.CounterVec

	mu      sync.Mutex
	refused map[string]noRoomAt // by stream
	silent  time.Time           // since when probe messages have not been answered; zero: the last one was
	unheard error               // why
}

// level is how full a stream is.
type level struct {
	name         string
	spare        bool // nothing of an event waits for room in it: the stream removes its oldest messages itself
	bytes, limit atomic.Uint64
	messages     atomic.Uint64
	added        atomic.Uint64 // bytes that this process stored since the last check
	broken       atomic.Pointer[broken]
	since        atomic.Int64 // since when no server takes messages for it, in Unix nanoseconds; 0: one does
}

// noRoomAt is when JetStream last had no room for a message.
type noRoomAt struct {
	at  time.Time
	err error
}

// used is about how many bytes are stored: those at the last check, and those stored since. A process assumes that each
// other process has stored as much as itself.
func (f *level) used(processes int64) uint64 {
	return f.bytes.Load() + f.added.Load()*uint64(max(1, processes))
}

// free is how many bytes are free. For a stream without a limit it is a huge number.
func (f *level) free(processes int64) uint64 {
	limit, used := f.limit.Load(), f.used(processes)
	if limit == 0 {
		return 1 << 62
	}
	return limit - min(limit, used)
}

// full reports whether the stream has almost no room left (99 % are taken).
func (f *level) full() bool {
	limit := f.limit.Load()
	return limit > 0 && f.bytes.Load() >= limit-limit/100
}

// New makes a Usage. Nothing is asked of NATS yet.
func New(cfg Config, nc *nats.Conn, js jetstream.JetStream, log zerolog.Logger) *Usage {
	u := &Usage{
		cfg: cfg, nc: nc, js: js, log: log,
		now: make(chan struct{}, 1), account: &level{name: accountStorage}, reported: map[string]time.Time{},
		refused: map[string]noRoomAt{},
	}
	for _, name := range []string{
		events.StreamEvents, events.StreamParked, events.StreamBodies, events.StreamDead, events.StreamResults,
		events.StreamSchedules,
		resources.BucketStream(events.BucketAttempts),
	} {
		u.streams = append(u.streams, &level{name: name})
	}
	u.events, u.parked = u.of(events.StreamEvents), u.of(events.StreamParked)
	// Limits for the time before the first check.
	for _, stream := range []string{events.StreamEvents, events.StreamParked, events.StreamSchedules} {
		u.of(stream).limit.Store(uint64(cfg.MaxBytes))
	}
	for i, owned := range []func(string) string{cfg.Prefix.DeadOwner, cfg.Prefix.ResultOwner, cfg.Prefix.BodyOwner} {
		u.shared = append(u.shared, &shared{level: u.of(sharedStreams[i]), owned: owned})
	}
	if cfg.RunHistory {
		l := &level{name: events.StreamRuns, spare: true}
		u.streams = append(u.streams, l)
		u.shared = append(u.shared, &shared{level: l, owned: func(owner string) string {
			return cfg.Prefix.Runs(owner, "", "", "", "")
		}})
	}
	u.refusals, u.dropped = counters()
	return u
}

// SetProcesses sets how many processes the fleet has. Calls are spread evenly over them.
func (u *Usage) SetProcesses(n int) { u.processes.Store(int64(n)) }

// LookNow makes Run check the streams at once.
func (u *Usage) LookNow() { jsapi.Signal(u.now) }

// WriteFailure returns why nats-server no longer writes a stream, or nil when it does or when that is not known.
func (u *Usage) WriteFailure(stream string) *stored.Failure { return u.of(stream).failure(u.nc) }

// OverHalf reports whether more than half of a stream's limit is taken.
func (u *Usage) OverHalf(stream string) bool {
	l := u.of(stream)
	return l.used(1) > l.free(1)
}

// OverShare reports whether so many messages, at the stream's mean size, have more bytes than are free.
func (u *Usage) OverShare(stream string, messages int) bool {
	l := u.of(stream)
	return float64(messages)*float64(l.bytes.Load())/float64(max(1, l.messages.Load())) > float64(l.free(1))
}

// all are the streams, and the account.
func (u *Usage) all() []*level { return append(slices.Clone(u.streams), u.account) }

// of returns the level of a stream.
func (u *Usage) of(stream string) *level {
	return u.streams[slices.IndexFunc(u.streams, func(f *level) bool { return f.name == stream })]
}

// Run checks how full the streams are until life ends. It removes the oldest messages of owners that have more stored
// than is free.
func (u *Usage) Run(life context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-timer.C:
		case <-u.now:
		}
		if u.nc.IsConnected() {
			ctx, cancel := context.WithTimeout(life, lookWait)
			if err := u.check(ctx); err != nil && life.Err() == nil {
				u.log.Debug().Err(err).Msg("how full the streams are is not known; trying again")
			}
			cancel()
		}
		timer.Reset(lookEvery + rand.N(lookEvery/5)) // processes need not check at the same time
		select {                                     // one check is enough for what happens at the same time
		case <-life.Done():
			return
		case <-time.After(lookPause):
		}
	}
}

// check checks everything. What cannot be checked now is left to the next check.
func (u *Usage) check(ctx context.Context) error {
	var errs []error
	began := time.Now()
	infos := map[string]*jetstream.StreamInfo{}
	for _, f := range u.streams {
		added, asked := f.added.Load(), time.Now()
		wait, cancel := context.WithTimeout(ctx, probeWait) // a stream without a leader does not hold up the others
		s, err := u.js.Stream(wait, f.name)
		cancel()
		if err != nil {
			errs = append(errs, fmt.Errorf("stream %s: %w", f.name, err))
			continue
		}
		infos[f.name] = s.CachedInfo()
		f.noteState(infos[f.name], added, u.cfg)
		f.noteLeaderOf(infos[f.name], asked)
		errs = append(errs, u.checkWrites(ctx, f, s.CachedInfo()))
	}
	errs = append(errs, u.checkAccount(ctx), u.probe(ctx))
	for _, s := range u.shared {
		if info := infos[s.name]; info != nil {
			errs = append(errs, u.keepShares(ctx, s, info))
		}
	}
	errs = append(errs, u.countAdmitted(ctx))
	u.report(ctx)
	u.forgetRefusals(began)
	return errors.Join(errs...)
}

// forgetRefusals forgets refusals before a time, for streams that have room now.
func (u *Usage) forgetRefusals(before time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, f := range u.streams {
		if limit := f.limit.Load(); u.refused[f.name].at.Before(before) && limit > 0 && f.bytes.Load() < limit-limit/10 {
			delete(u.refused, f.name)
		}
	}
}

// noteState notes what JetStream reports about a stream. added is what this process had stored before it asked.
func (f *level) noteState(info *jetstream.StreamInfo, added uint64, cfg Config) {
	limit := max(0, info.Config.MaxBytes)
	if f.name == events.StreamSchedules { // JetStream lets this stream have no limit
		limit = cfg.MaxBytes
	}
	f.added.Add(-added)
	f.bytes.Store(info.State.Bytes)
	f.messages.Store(info.State.Msgs)
	f.limit.Store(uint64(limit))
}

// checkAccount asks how many bytes all streams of the account take, and may take.
func (u *Usage) checkAccount(ctx context.Context) error {
	info, err := u.js.AccountInfo(ctx)
	if err != nil {
		return fmt.Errorf("account: %w", err)
	}
	tier := info.Tier
	if t, ok := info.Tiers[fmt.Sprintf("R%d", max(1, u.cfg.Replicas))]; ok {
		tier = t
	}
	u.Reserved.looked(tier)
	u.account.bytes.Store(tier.Store)
	u.account.limit.Store(uint64(max(0, tier.Limits.MaxStore)))
	return nil
}

// probe stores a probe message of a few bytes. All processes use the same subject, which is no key of the bucket. The
// server reports its limits only to a client that stores.
func (u *Usage) probe(ctx context.Context) error {
	m := &nats.Msg{Subject: "$KV." + events.BucketAttempts + ".probe", Header: nats.Header{"KV-Operation": {"DEL"}},
		Data: []byte(u.cfg.Node)}
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	asked := time.Now()
	_, err := u.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
	u.Published(accountStorage, err)
	u.probed(asked, err)
	return err
}

// Published notes how the publish of a message to a stream ended: err is nil, or says that JetStream had no room, that
// the stream has no leader, or something else. When JetStream did not answer, Run checks why. It may be called from any
// goroutine.
func (u *Usage) Published(stream string, err error) {
	if err == nil {
		if stream != accountStorage {
			u.of(stream).noteLeader()
		}
		return
	}
	if stream != accountStorage && errors.Is(err, jsapi.ErrNoAnswer) && u.of(stream).failure(u.nc) == nil {
		jsapi.Signal(u.now)
	}
	if stream != accountStorage && noLeader(err) {
		u.of(stream).noteNoLeader()
		jsapi.Signal(u.now)
	}
	if !jsapi.IsFull(err) {
		return
	}
	u.mu.Lock()
	u.refused[stream] = noRoomAt{time.Now(), err}
	u.mu.Unlock()
	u.refusals.WithLabelValues(stream).Inc()
	if stream != accountStorage {
		jsapi.Signal(u.now)
	}
}

// Grew notes that this process stored size bytes in a stream, or is about to.
func (u *Usage) Grew(stream string, size int) { u.grew(u.of(stream), size) }

// grew notes that this process stored size bytes, or is about to. After very many bytes, Run checks at once how full
// the stream is.
func (u *Usage) grew(f *level, size int) {
	added, each := f.added.Add(uint64(size)), f.limit.Load()/soonPart/uint64(max(1, u.processes.Load()))
	if each > 0 && added/each != (added-uint64(size))/each {
		jsapi.Signal(u.now)
	}
}

// Err returns why something of the fleet cannot be stored now, or nil. It may be called from any goroutine.
func (u *Usage) Err() error {
	var errs []error
	for _, f := range u.all() {
		u.mu.Lock()
		r, refused := u.refused[f.name]
		u.mu.Unlock()
		failed := f.failure(u.nc)
		switch {
		case f.spare:
		case failed != nil:
			errs = append(errs, fmt.Errorf("storage: %w; %s", failed, stored.Advice))
		case f.full():
			errs = append(errs, fmt.Errorf("storage: %s is full, %d of %d bytes", f.name, f.bytes.Load(), f.limit.Load()))
		case refused && time.Since(r.at) < refusedFor:
			errs = append(errs, fmt.Errorf("storage: %s has no room: %w", f.name, r.err))
		case f.leaderless() != nil:
			errs = append(errs, f.leaderless())
		}
	}
	return errors.Join(append(errs, u.unanswered())...)
}
