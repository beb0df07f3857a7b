package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// want is a source of the active version of a worker.
type want struct {
	owner, worker string
	source        workers.Source
}

// wanted returns the sources of all workers.
func (s *Sources) wanted() (list []want) {
	for _, in := range s.cfg.Catalog.All() {
		if w := in.Active(); w != nil {
			for _, source := range w.Sources {
				list = append(list, want{w.Owner, w.Name, source})
			}
		}
	}
	return list
}

// looking is one look at the consumers.
type looking struct {
	s       *Sources
	b       records
	ctx     context.Context //nolint:containedctx // of the look
	life    context.Context //nolint:containedctx // of pumps
	now     time.Time
	running *sync.WaitGroup

	has    []Record
	used   map[string]bool // keys of records that are wanted, and of core subjects
	ill    map[string]Status
	silent map[string]bool // connections that did not answer in this look
}

// answerWait is how long a look waits for what it asks about one source. A connection that does not answer by then is
// asked nothing more in this look: it must not hold up the sources of others.
const answerWait = 3 * time.Second

// all makes consumers, records and feeds what is wanted.
func (l *looking) all(wanted []want) (err error) {
	if l.has, err = l.b.list(l.ctx, ">"); err != nil {
		return err
	}
	l.used, l.ill, l.silent = map[string]bool{}, map[string]Status{}, map[string]bool{}
	// A source that had a record keeps it: another one of its stream, which is new, must not take it first.
	slices.SortStableFunc(wanted, func(a, b want) int { return cmp.Compare(l.isNew(a), l.isNew(b)) })
	for _, w := range wanted {
		var key string
		err := l.asking(w.source.Connection, func() (err error) {
			key, err = l.one(w)
			return err
		})
		l.used[key] = true
		if err != nil && l.ctx.Err() == nil && !errors.Is(err, errOvertaken) {
			l.ill[key] = unread(w, key, err)
		}
	}
	if l.ctx.Err() != nil {
		return l.ctx.Err()
	}
	l.endOthers()
	return l.sweep()
}

// asking calls f with a context of answerWait, and notes whether the connection answered.
func (l *looking) asking(connection string, f func() error) error {
	whole := l.ctx
	defer func() { l.ctx = whole }()
	var cancel context.CancelFunc
	l.ctx, cancel = context.WithTimeout(whole, answerWait)
	defer cancel()
	err := f()
	if err != nil && l.ctx.Err() != nil && whole.Err() == nil {
		l.silent[connection] = true
	}
	return err
}

// away returns why nothing can be asked of a connection now, or nil.
func (l *looking) away(name string, conn *Conn) error {
	switch {
	case !conn.NC.IsConnected():
		return fmt.Errorf("connection %q is not connected", name)
	case l.silent[name]:
		return fmt.Errorf("connection %q does not answer", name)
	}
	return nil
}

// one makes one source what it should be. key names it.
func (l *looking) one(w want) (key string, err error) {
	conn := l.s.cfg.Conns[w.source.Connection]
	key = w.owner + "." + w.worker + " " + w.source.String()
	if conn == nil {
		return key, fmt.Errorf("the fleet has no connection %q (PINWHEEL_SOURCES)", w.source.Connection)
	}
	if err := l.away(w.source.Connection, conn); err != nil {
		return l.known(w, key), err
	}
	if !l.s.cfg.Catalog.Policy(w.owner).MayConsume(w.source) {
		return key, errors.New(notGranted)
	}
	if w.source.Subject != "" {
		return key, l.listen(key, w)
	}
	rec, err := l.recordOf(w)
	if err != nil {
		return rec.key(), err
	}
	return rec.key(), l.follow(rec, w, conn)
}

// follow makes sure that the consumer of a record is there, and that a feed has its messages.
func (l *looking) follow(rec Record, w want, conn *Conn) error {
	why, err := l.s.check.fault(l.ctx, rec.target(), w.source)
	if err == nil && why != "" {
		if err = errors.New(why); why == notThere {
			err = errNoStream
		}
	}
	if err != nil {
		l.fails(rec)
		return err
	}
	stream, err := conn.JS.Stream(l.ctx, rec.Stream)
	if err != nil {
		return err
	}
	created := stream.CachedInfo().Created
	if rec.Created != 0 && rec.Created != created.UnixNano() {
		// Another stream has the name: none of its messages has come.
		rec.Floor, rec.Start = 0, workers.Start{From: workers.StartAll}
	}
	info, made, err := ensure(l.ctx, stream, rec)
	if err != nil {
		l.fails(rec)
		return err
	}
	if made || rec.Created != created.UnixNano() || info.AckFloor.Stream > rec.Floor {
		rec.Created, rec.Floor = created.UnixNano(), info.AckFloor.Stream
		stored, err := l.b.put(l.ctx, rec)
		switch {
		case err == nil:
			rec = stored
		case made: // the record may be gone, and nobody would know of the consumer
			return errors.Join(err, stream.DeleteConsumer(l.ctx, rec.Consumer()))
		case !errors.Is(err, errOvertaken):
			return err
		}
	}
	return l.s.start(l.life, rec, w, created, info.NumPending, l.running)
}

// fails ends the feed of a record that cannot be followed. When there was no answer, the feed stays.
func (l *looking) fails(rec Record) {
	if l.ctx.Err() == nil {
		l.s.stop(rec.key())
	}
}

// ensure returns the consumer of a record. It makes it if it is missing, and never changes one that is not the fleet's.
func ensure(ctx context.Context, stream jetstream.Stream,
	rec Record) (info *jetstream.ConsumerInfo, made bool, err error) {
	cfg := consumerOf(rec)
	has, err := stream.Consumer(ctx, cfg.Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		if stream.CachedInfo().Config.Retention == jetstream.WorkQueuePolicy {
			// The server refuses another place. The work queue has only what is not acked.
			cfg.DeliverPolicy, cfg.OptStartSeq, cfg.OptStartTime = jetstream.DeliverAllPolicy, 0, nil
		}
		has, err = stream.CreateConsumer(ctx, cfg)
		if err == nil {
			return has.CachedInfo(), true, nil
		}
	}
	if err != nil {
		return nil, false, err
	}
	info = has.CachedInfo()
	if info.Config.Metadata[metaSource] != rec.ID {
		return nil, false, fmt.Errorf("stream %s has a consumer %s that is not this fleet's: remove it, or name the worker otherwise",
			rec.Stream, cfg.Durable)
	}
	if !slices.Equal(filtersOf(info.Config), rec.Filters) {
		next := info.Config
		next.FilterSubject, next.FilterSubjects = "", nil
		setFilters(&next, rec.Filters)
		if has, err = stream.UpdateConsumer(ctx, next); err != nil {
			return nil, false, err
		}
	}
	return has.CachedInfo(), false, nil
}

const (
	// ackWait is how long a message may be on its way to be an event. maxAckPending is for all processes together.
	ackWait, maxAckPending = 30 * time.Second, 1 << 14
)

// consumerOf is the consumer of a record. One that was lost continues where the fleet was.
func consumerOf(rec Record) jetstream.ConsumerConfig {
	cfg := jetstream.ConsumerConfig{
		Durable: rec.Consumer(), Description: "Source of worker " + rec.target() + " of Pinwheel",
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1, MaxAckPending: maxAckPending,
		Metadata: map[string]string{metaSource: rec.ID, metaWorker: rec.target()},
	}
	setFilters(&cfg, rec.Filters)
	at, err := time.Parse(time.RFC3339Nano, rec.Start.Time)
	switch {
	case rec.Start.From == workers.StartAll && rec.Floor == 0:
		cfg.DeliverPolicy = jetstream.DeliverAllPolicy
	case rec.Floor > 0:
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, rec.Floor+1
	case rec.Start.Sequence > 0:
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, uint64(rec.Start.Sequence)
	case rec.Start.Time != "" && err == nil:
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &at
	default: // those since the record was made: the consumer may be made later, or again
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &rec.Made
	}
	return cfg
}

// filtersOf is the reverse of setFilters.
func filtersOf(cfg jetstream.ConsumerConfig) []string {
	if cfg.FilterSubject != "" {
		return []string{cfg.FilterSubject}
	}
	return cfg.FilterSubjects
}

func setFilters(cfg *jetstream.ConsumerConfig, filters []string) {
	if len(filters) == 1 {
		cfg.FilterSubject = filters[0]
		return
	}
	cfg.FilterSubjects = filters
}

// endOthers ends the feeds of sources that are not wanted.
func (l *looking) endOthers() {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	for key, f := range l.s.feeds {
		if !l.used[key] {
			f.pump.drop(f)
			delete(l.s.feeds, key)
		}
	}
	for key, is := range l.ill {
		if l.s.ill[key].Why != is.Why {
			l.s.log.Warn().Str("source", key).Str("why", is.Why).Msg("a source cannot be read; trying again")
		}
	}
	l.s.ill = l.ill
}

// sweep marks the records that no worker wants, and removes those that nobody has wanted for the time of grace, with
// their consumers.
func (l *looking) sweep() error {
	var errs []error
	for _, r := range l.has {
		switch {
		case l.used[r.key()]:
		case r.Removed.IsZero():
			r.Removed = l.now.UTC()
			_, err := l.b.put(l.ctx, r)
			errs = append(errs, err)
		case l.now.Sub(r.Removed) > l.s.cfg.Grace:
			errs = append(errs, l.discard(r))
		}
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return errors.Is(err, errOvertaken) })
	return errors.Join(errs...)
}

// discard removes a record and its consumer. While the connection does not answer, they stay.
func (l *looking) discard(r Record) error {
	conn := l.s.cfg.Conns[r.Connection]
	if conn != nil && l.away(r.Connection, conn) != nil {
		return nil
	}
	return l.asking(r.Connection, func() error { return discard(l.ctx, conn, l.b, r) })
}

// discard removes the consumer of a record, if it is the fleet's, and then the record.
func discard(ctx context.Context, conn *Conn, b records, r Record) error {
	if conn == nil {
		return nil // the fleet has lost the connection: the record stays until it has it again
	}
	stream, err := conn.JS.Stream(ctx, r.Stream)
	if err == nil {
		var has jetstream.Consumer
		if has, err = stream.Consumer(ctx, r.Consumer()); err == nil &&
			has.CachedInfo().Config.Metadata[metaSource] == r.ID {
			err = stream.DeleteConsumer(ctx, r.Consumer())
		}
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		return fmt.Errorf("consumer %s of stream %s: %w", r.Consumer(), r.Stream, err)
	}
	return b.remove(ctx, r)
}

// start makes the feed of a record, unless it runs.
func (s *Sources) start(life context.Context, rec Record, w want, created time.Time, pending uint64,
	running *sync.WaitGroup) error {
	s.mu.Lock()
	before := s.feeds[rec.key()]
	s.mu.Unlock()
	if before != nil && before.rec.ID == rec.ID && before.created.Equal(created) && before.rec.hasFilters(w.source) {
		before.mu.Lock()
		before.wait(pending, time.Now())
		before.mu.Unlock()
		before.resumed()
		return nil
	}
	s.stop(rec.key())
	p, err := s.pumpOf(life, rec.Connection, running)
	if err != nil {
		return err
	}
	f := s.newFeed(p, rec, w)
	f.created = created
	f.wait(pending, time.Now())
	f.next = p.conn.API + "CONSUMER.MSG.NEXT." + rec.Stream + "." + rec.Consumer()
	s.keep(rec.key(), f)
	p.add(f)
	return nil
}

func (s *Sources) newFeed(p *pump, rec Record, w want) *feed {
	return &feed{s: s, pump: p, rec: rec, source: w.source, subject: s.cfg.Prefix.Source(w.owner, w.worker),
		tally: tally{ahead: mostAhead}} // until it is counted
}

func (s *Sources) keep(key string, f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.feeds[key] = f
}

// stop ends a feed, if there is one.
func (s *Sources) stop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.feeds[key]; f != nil {
		f.pump.drop(f)
		delete(s.feeds, key)
	}
}

// listen makes the feed of a source of core subjects, unless it runs.
func (l *looking) listen(key string, w want) error {
	if why := foreign(l.s.cfg.Prefix, []string{w.source.Subject}); why != "" {
		l.s.stop(key)
		return errors.New(why)
	}
	l.s.mu.Lock()
	before := l.s.feeds[key]
	l.s.mu.Unlock()
	if before != nil {
		return nil
	}
	p, err := l.s.pumpOf(l.life, w.source.Connection, l.running)
	if err != nil {
		return err
	}
	f := l.s.newFeed(p, Record{Owner: w.owner, Worker: w.worker}, w)
	if err := p.listen(f); err != nil {
		return err
	}
	l.s.keep(key, f)
	return nil
}
