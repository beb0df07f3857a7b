package usage

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/internal/lib/repeats"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// Bucket is the KV bucket of a fleet. Its keys are
//
//	part.DAY.HOUR.SHARD.PROCESS   what a process has counted in an hour
//	hour.DAY.HOUR.SHARD           the sum of the parts, when the hour is over
//	day.DAY.SHARD                 the sum of the hours, when the day is over
//	day.DAY.all                   that the sums of all shards are there
//
// with DAY like 20261130, HOUR like 17, both UTC, and SHARD a hexadecimal digit.
const Bucket = "PINWHEEL_USAGE"

const (
	// Every is how often a process writes what it has counted. A process that is killed loses at most that, and what the
	// write under way has.
	Every = 10 * time.Second
	// hoursKept and daysKept are how long usage is kept by the hour and by the day.
	hoursKept, daysKept = 35 * 24 * time.Hour, 400 * 24 * time.Hour
	// maxBytes bounds the bucket, and minBytes that of a fleet with a small event stream. A row takes about 40 bytes,
	// compressed. 1000 owners with two workers each that run in every hour have 2000 rows: 67 MB in the hours of 35
	// days, 32 MB in 400 days, and 0.2 MB in the parts of a process. So they fit, with 50 processes. An owner has at
	// most 52 rows: 1.7 MB in hours, and 0.8 MB in days. With more than that, Fold removes the oldest sums when the
	// bucket is nearly full, see makeRoom.
	maxBytes, minBytes = 128 << 20, 4 << 20
	// patience is how long a write may take.
	patience = 5 * time.Second
)

// Config configures a Ledger.
type Config struct {
	Replicas int
	MaxBytes int64 // of the event stream
	// Take calls each with what workers have used since the last call.
	Take func(each func(owner, worker string, c Counts))
	// Stored returns the bytes of the streams of owners. nil: these are not counted.
	Stored func(ctx context.Context) (map[string]uint64, error)
	Now    func() time.Time // nil: time.Now
	Log    zerolog.Logger
}

func (c Config) bucket() jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: Bucket, Description: "What workers use, by the hour and by the day", History: 1,
		MaxBytes:       min(maxBytes, max(minBytes, c.MaxBytes/16)),
		LimitMarkerTTL: time.Hour, Storage: jetstream.FileStorage, Replicas: max(1, c.Replicas),
	}
}

// Resources are all resources of this package in JetStream.
func Resources(c Config) []resources.Resource {
	b := c.bucket()
	return []resources.Resource{{Bucket: &b}}
}

// Ledger counts what the workers of a process use.
type Ledger struct {
	cfg     Config
	kv      jetstream.KeyValue
	store   *Store
	process string // names this process; it is never used again
	log     *repeats.Log

	mu      sync.Mutex // of one write at a time
	hour    time.Time
	written map[string]*table // of the hour, by shard
	waiting map[string]*table // not written yet

	days map[time.Time]bool // that are added up; of Fold
}

// Open creates the bucket, or updates it to what it should be.
func Open(ctx context.Context, js jetstream.JetStream, cfg Config) (*Ledger, error) {
	kv, err := (&resources.Reconciler{JS: js, Log: cfg.Log}).Bucket(ctx, cfg.bucket())
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", Bucket, err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	store := &Store{js, cfg.Now}
	return &Ledger{cfg: cfg, kv: kv, store: store, process: rand.Text()[:12], log: repeats.New(cfg.Log),
		written: map[string]*table{}, waiting: map[string]*table{}}, nil
}

// Run writes what is counted, and adds up hours and days that are over, until ctx is done. Then it writes the rest.
func (l *Ledger) Run(ctx context.Context) {
	write, fold := time.NewTicker(Every), time.NewTicker(foldEvery)
	defer write.Stop()
	defer fold.Stop()
	for {
		select {
		case <-ctx.Done():
			l.Write(context.WithoutCancel(ctx))
			return
		case <-write.C:
			l.Write(ctx)
		case <-fold.C:
			if err := l.Fold(ctx); err != nil && ctx.Err() == nil {
				l.log.Warn(err, "hours of the usage could not be added up; trying again").Send()
			}
		}
	}
}

// Write writes what was counted since the last write. What cannot be written waits for the next one. If the hour is
// over by then, it counts for the next hour.
func (l *Ledger) Write(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if hour := l.cfg.Now().UTC().Truncate(time.Hour); !hour.Equal(l.hour) {
		l.hour, l.written = hour, map[string]*table{}
		if s := shardOf(""); l.waiting[s] == nil {
			l.waiting[s] = &table{} // an hour without events is added up too: owners have something stored
		}
	}
	l.cfg.Take(func(owner, worker string, c Counts) {
		s := shardOf(owner)
		if l.waiting[s] == nil {
			l.waiting[s] = &table{}
		}
		l.waiting[s].add(name{owner, worker}, c)
	})
	for s, waiting := range l.waiting {
		sum := &table{}
		if l.written[s] != nil {
			sum.addAll(l.written[s])
		}
		sum.addAll(waiting)
		if err := l.put(ctx, s, sum); err != nil {
			l.log.Warn(err, "usage could not be written; trying again").Str("bucket", Bucket).Send()
			return
		}
		l.written[s] = sum
		delete(l.waiting, s)
	}
}

func (l *Ledger) put(ctx context.Context, shard string, t *table) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	data, err := t.encode()
	if err == nil {
		_, err = l.kv.Put(ctx, partKey(l.hour, shard, l.process), data)
	}
	return err
}

const dayFormat, hourFormat = "20060102", "15"

func partKey(hour time.Time, shard, process string) string {
	return "part." + hour.Format(dayFormat) + "." + hour.Format(hourFormat) + "." + shard + "." + process
}

func hourKey(hour time.Time, shard string) string {
	return "hour." + hour.Format(dayFormat) + "." + hour.Format(hourFormat) + "." + shard
}

// wholeDay stands for the shard in the key that says that all sums of a day are there.
const wholeDay = "all"

func dayKey(day time.Time, shard string) string { return "day." + day.Format(dayFormat) + "." + shard }

const (
	// foldEvery is how often a process looks for hours that are over.
	foldEvery = 5 * time.Minute
	// grace is how long after its end an hour is added up: processes with slow clocks write until then.
	grace = 15 * time.Minute
)

// Fold adds up the parts of hours, and the hours of days, that are over. Any number of processes may do it at once: the
// first one that stores a sum has it, and the others store none.
func (l *Ledger) Fold(ctx context.Context) error {
	now := l.cfg.Now().UTC()
	in := span{From: now.Add(-hoursKept), To: now}
	if err := l.knowDays(ctx); err != nil {
		return err
	}
	if err := l.makeRoom(ctx); err != nil {
		return err
	}
	all := newFound()
	if err := l.store.scan(ctx, []string{"part.*.*.*.*"}, all, in); err != nil {
		return err
	}
	var stored map[string]uint64
	open := map[time.Time]bool{} // days with an hour that is not added up
	for hour, of := range all.hours {
		if now.Before(hour.Add(time.Hour + grace)) {
			open[hour.Truncate(aDay)] = true
			continue
		}
		if stored == nil && l.cfg.Stored != nil {
			var err error
			if stored, err = l.cfg.Stored(ctx); err != nil {
				return err
			}
		}
		if err := l.foldHour(ctx, hour, of, stored); err != nil {
			return err
		}
	}
	for day := in.From.Truncate(aDay).Add(aDay); !now.Before(day.Add(aDay + time.Hour + grace)); day = day.Add(aDay) {
		if open[day] || l.days[day] {
			continue
		}
		if err := l.foldDay(ctx, day, in); err != nil {
			return err
		}
	}
	return nil
}

// knowDays reads which days are added up, once.
func (l *Ledger) knowDays(ctx context.Context) error {
	if l.days != nil {
		return nil
	}
	all, now := newFound(), l.cfg.Now().UTC()
	in := span{From: now.Add(-daysKept - aDay), To: now}
	if err := l.store.scan(ctx, []string{"day.*." + wholeDay}, all, in); err != nil {
		return err
	}
	l.days = map[time.Time]bool{}
	for day := range all.days {
		l.days[day] = true
	}
	return nil
}

// foldDay adds up the hours of a day.
func (l *Ledger) foldDay(ctx context.Context, day time.Time, in span) error {
	all := newFound()
	if err := l.store.scan(ctx, []string{"hour." + day.Format(dayFormat) + ".*.*"}, all, in); err != nil {
		return err
	}
	sums := map[string]*table{}
	for _, of := range all.hours {
		for s, t := range of.sums {
			if sums[s] == nil {
				sums[s] = &table{}
			}
			sums[s].addAll(t)
		}
	}
	for s, t := range sums {
		if err := l.create(ctx, dayKey(day, s), t.sum(), daysKept); err != nil {
			return err
		}
	}
	if len(sums) > 0 { // last: who reads it knows that all shards are there
		if err := l.create(ctx, dayKey(day, wholeDay), &table{}, daysKept); err != nil {
			return err
		}
	}
	l.days[day] = true
	return nil
}

// foldHour adds up the parts of an hour, and removes them. stored are the bytes of owners now.
func (l *Ledger) foldHour(ctx context.Context, hour time.Time, of *hourOf, stored map[string]uint64) error {
	sums := map[string]*table{}
	for key, t := range of.parts {
		if sums[key.shard] == nil {
			sums[key.shard] = &table{}
		}
		sums[key.shard].addAll(t)
	}
	for owner, bytes := range stored {
		s := shardOf(owner)
		if sums[s] == nil {
			sums[s] = &table{}
		}
		sums[s].add(name{Owner: owner}, Counts{StoredByteHours: float64(bytes)})
	}
	for s, t := range sums {
		if err := l.create(ctx, hourKey(hour, s), t.sum(), hoursKept); err != nil {
			return err
		}
	}
	stream, err := l.store.stream(ctx)
	if err != nil {
		return err
	}
	for s := range sums {
		if err := remove(ctx, stream, partKey(hour, s, "*")); err != nil {
			return err
		}
	}
	return nil
}

// create stores a sum, unless another process has.
func (l *Ledger) create(ctx context.Context, key string, t *table, kept time.Duration) error {
	data, err := t.encode()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err = l.kv.Create(ctx, key, data, jetstream.KeyTTL(kept))
	if errors.Is(err, jetstream.ErrKeyExists) {
		return nil
	}
	return err
}

var errNoUsage = errors.New("the fleet has no bucket " + Bucket + ": no process of this release has run")

// usageError says in words that there is no bucket.
func usageError(err error) error {
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, nats.ErrNoResponders) {
		return errNoUsage
	}
	return err
}
