package schedule

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/cron"
)

// Ticker makes the events of schedules. Every process has one, and all of them try to make each tick. A tick's event
// and the new state are stored together or not at all, and only if no process has made the tick yet
// (docs/development/adr/0011). Make it with NewTicker, start it with Run. Its exported methods may be called from any
// goroutine.
type Ticker struct {
	store   stateStore
	node    string
	now     func() time.Time
	log     zerolog.Logger
	ticks   prometheus.Counter
	skipped *prometheus.CounterVec                       // by skip
	full    func(ctx context.Context, owner string) bool // reports whether owner has too many events waiting for more ticks
	skips   func(owner, worker string) bool              // reports whether ticks of a worker are left out: it is paused
	onTick  atomic.Pointer[func(owner, worker, schedule string, tick time.Time)]

	wake chan struct{}

	mu      sync.Mutex
	live    map[string][]*liveSchedule // by "owner/worker"
	removed []*liveSchedule            // schedules whose worker is gone, to be noted
}

// NewTicker makes a Ticker. node names this process, now returns the time of NATS, full reports whether an owner
// gets no ticks, and skips whether a worker does.
func NewTicker(nc *nats.Conn, s events.Subjects, node string, now func() time.Time,
	full func(ctx context.Context, owner string) bool, skips func(owner, worker string) bool, log zerolog.Logger) *Ticker {
	return &Ticker{
		store: stateStore{nc, s}, node: node, now: now, log: log, full: full, skips: skips, wake: make(chan struct{}, 1),
		live: map[string][]*liveSchedule{},
		ticks: prometheus.NewCounter(prometheus.CounterOpts{Name: "pinwheel_ticks_total",
			Help: "Events of schedules that this process made."}),
		skipped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pinwheel_ticks_skipped_total",
			Help: "Ticks of schedules that were left out, by reason: misfire, overlap, pause or share."}, []string{"reason"}),
	}
}

// Collectors are the metrics of the ticker.
func (t *Ticker) Collectors() []prometheus.Collector {
	return []prometheus.Collector{t.ticks, t.skipped}
}

// OnTick sets f, which is called for every tick that this process makes from now on. f must not block.
func (t *Ticker) OnTick(f func(owner, worker, schedule string, tick time.Time)) { t.onTick.Store(&f) }

// Install starts the schedules of the active version of a worker in this process, and ends those of the version before.
// In a split, the version before the new one is the active one.
func (t *Ticker) Install(in workers.Installation) {
	w := in.Active()
	if w == nil {
		t.replace(in.Target(), nil)
		return
	}
	var list []*liveSchedule
	for _, s := range w.Schedules {
		spec, err := cron.Parse(s.Cron, s.TimeZone)
		if err != nil { // deploy refuses what it cannot parse, but its time zones may be newer
			t.log.Error().Err(err).Str("worker", w.Target()).Str("schedule", s.Name).
				Msg("schedule cannot be computed; it does not tick")
			continue
		}
		live := newLiveSchedule(in, s)
		live.spec = spec
		list = append(list, live)
	}
	t.replace(w.Target(), list)
}

// Remove ends the schedules of a worker.
func (t *Ticker) Remove(owner, worker string) { t.replace(owner+"/"+worker, nil) }

// replace makes list the live schedules of a worker.
func (t *Ticker) replace(target string, list []*liveSchedule) {
	t.mu.Lock()
	for _, old := range t.live[target] {
		if !slices.ContainsFunc(list, func(s *liveSchedule) bool { return s.schedule.Name == old.schedule.Name }) {
			t.removed = append(t.removed, old)
		}
	}
	if delete(t.live, target); len(list) > 0 {
		t.live[target] = list
	}
	t.mu.Unlock()
	jsapi.Signal(t.wake)
}

// Run makes ticks until ctx is done.
func (t *Ticker) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-timer.C:
		}
		next := t.step(ctx)
		timer.Reset(min(max(next.Sub(t.now()), 0), time.Minute)) // clocks may be changed
	}
}

// tickers is how many schedules are handled at once.
const tickers = 16

// step makes the ticks that are due, and returns when to look again.
func (t *Ticker) step(ctx context.Context) time.Time {
	now := t.now()
	next := now.Add(time.Hour)
	var due []*liveSchedule
	t.mu.Lock()
	removed := t.removed
	t.removed = nil
	for _, list := range t.live {
		for _, s := range list {
			if s.next.After(now) {
				next = earlier(next, s.next)
			} else {
				due = append(due, s)
			}
		}
	}
	t.mu.Unlock()
	for _, s := range removed {
		t.noteRemoved(ctx, s)
	}
	slices.SortFunc(due, compareLive)
	var running sync.WaitGroup
	room := make(chan struct{}, tickers)
	for _, s := range due {
		room <- struct{}{}
		running.Go(func() {
			t.look(ctx, s)
			<-room
		})
	}
	running.Wait()
	for _, s := range due {
		next = earlier(next, s.next)
	}
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// look handles one schedule that is due for a look, and sets the time of the next look.
func (t *Ticker) look(ctx context.Context, s *liveSchedule) {
	err := t.tick(ctx, s)
	switch {
	case err == nil:
		s.fails = 0
	case errors.Is(err, errTickTaken):
		s.known, s.next = false, t.now()
	case ctx.Err() == nil:
		s.known, s.next = false, t.now().Add(50*time.Millisecond<<min(s.fails, 6))
		s.fails++
		t.log.Warn().Err(err).Str("worker", s.owner+"/"+s.worker).Str("schedule", s.schedule.Name).
			Msg("tick could not be made; trying again")
	}
}

func (t *Ticker) tick(ctx context.Context, s *liveSchedule) (err error) {
	if !s.known {
		if s.state, s.seq, err = t.store.read(ctx, s.owner, s.worker, s.schedule.Name); err != nil {
			return err
		}
		s.known = true
	}
	now := t.now()
	if s.newer() || s.state != nil && s.state.Paused {
		// A schedule of another deployment, which this process does not know yet; or it is paused.
		s.known, s.next = false, s.spec.Next(now)
		s.next = earlier(s.next, now.Add(10*time.Second))
		return nil
	}
	base := s.base()
	due := plan(s.spec, s.schedule, base, now)
	if due.last.IsZero() {
		s.plan(base)
		return nil
	}
	if patience := standby(); s.state != nil && s.state.Node != t.node && now.Before(due.last.Add(patience)) {
		s.known, s.next = false, due.last.Add(patience)
		return nil
	}
	switch {
	case len(due.make) == 0:
	case t.skips(s.owner, s.worker):
		due.leave(len(due.make), skipPause)
	case t.full(ctx, s.owner):
		due.leave(len(due.make), skipShare)
	}
	return t.make(ctx, s, due)
}

// leftOut counts ticks that this process has left out for good, and logs why.
func (t *Ticker) leftOut(s *liveSchedule, n int, why skip, words string, last time.Time) {
	t.skipped.WithLabelValues(string(why)).Add(float64(n))
	level := zerolog.WarnLevel
	if why == skipOverlap {
		level = zerolog.InfoLevel
	}
	t.log.WithLevel(level).Str("worker", s.owner+"/"+s.worker).Str("schedule", s.schedule.Name).Int("ticks", n).
		Time("tick", last).Msg("ticks are left out: " + words)
}

// standby is how long after a tick's time a process makes it, if another process made the last one.
func standby() time.Duration { return tickStandby + rand.N(tickStandby) }

// plan sets when the next tick is due.
func (s *liveSchedule) plan(base time.Time) {
	if s.next = s.spec.Next(base); s.next.IsZero() {
		s.next = base.Add(365 * 24 * time.Hour)
	}
}

// make stores the events of ticks, at most tickBatch at a time. Who stores the state counts what it leaves out.
func (t *Ticker) make(ctx context.Context, s *liveSchedule, due ticksDue) error {
	for ticks, last := due.make, due.last; ; {
		part, upTo := ticks, last
		if len(ticks) > tickBatch {
			part, upTo = ticks[:tickBatch], ticks[tickBatch-1]
		}
		made, err := t.commit(ctx, s, part, upTo)
		if err != nil {
			return err
		}
		t.ticks.Add(float64(len(made)))
		if f := t.onTick.Load(); f != nil {
			for _, tick := range made {
				(*f)(s.owner, s.worker, s.schedule.Name, tick)
			}
		}
		if ticks = ticks[len(part):]; len(ticks) == 0 {
			for why, n := range due.skipped {
				t.leftOut(s, n, why, because[why], last)
			}
			s.plan(last)
			return nil
		}
	}
}

// commit stores a state and events, and returns the ticks that it made. When that fails and the state is unchanged, the
// event of an earlier tick prevents it.
func (t *Ticker) commit(ctx context.Context, s *liveSchedule, ticks []time.Time,
	last time.Time) (made []time.Time, err error) {
	st := s.after(last, t.node)
	st.Ticked = last.Unix()
	seq, err := t.store.commit(ctx, s, st, ticks)
	if errors.Is(err, errTickTaken) && len(ticks) > 0 && s.schedule.Overlap == events.OverlapForbid {
		_, now, err2 := t.store.read(ctx, s.owner, s.worker, s.schedule.Name)
		if err2 != nil {
			return nil, err2
		}
		if now == s.seq {
			st.Skipped = last.Unix()
			if seq, err = t.store.commit(ctx, s, st, nil); err == nil {
				t.leftOut(s, len(ticks), skipOverlap, "the event of the one before has not ended", last)
			}
			ticks = nil
		}
	}
	if err != nil {
		return nil, err
	}
	s.state, s.seq = st, seq
	return ticks, nil
}

// noteRemoved notes that a schedule has ended, so that a later schedule with its name does not make up for the time
// between.
func (t *Ticker) noteRemoved(ctx context.Context, s *liveSchedule) {
	st, seq, err := t.store.read(ctx, s.owner, s.worker, s.schedule.Name)
	if err != nil || st == nil || st.Removed || st.Deployed > s.deployed {
		return // from now on only the schedule's older version can tell that
	}
	st.Removed = true
	s.seq = seq
	_, _ = t.store.commit(ctx, s, st, nil) // after a change, another process has it live, or has noted the end
}
