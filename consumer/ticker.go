package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/cron"
)

// ticker makes the events of schedules. Every process has one, and all of them try: a tick's event and the note that it is made are
// stored together or not at all, and only if nobody has made it yet (docs/adr/0011).
type ticker struct {
	store tickStore
	node  string
	now   func() time.Time
	log   zerolog.Logger
	made  func(n int)                                  // counts events
	full  func(ctx context.Context, owner string) bool // it has so many events there that no more ticks are made for it
	told  atomic.Pointer[func(owner, worker, schedule string, tick time.Time)]

	wake chan struct{}

	mu      sync.Mutex
	live    map[string][]*liveSchedule // by "owner/worker"
	removed []*liveSchedule            // whose worker is gone; to be noted
}

func newTicker(store tickStore, node string, now func() time.Time, log zerolog.Logger) *ticker {
	return &ticker{store: store, node: node, now: now, log: log, made: func(int) {}, full: func(context.Context, string) bool { return false }, wake: make(chan struct{}, 1), live: map[string][]*liveSchedule{}}
}

// Install makes the schedules of w, the active version of its worker from now on, live in this process; those of the version before
// are no more. It may be called from any goroutine and does not block.
func (c *Consumer) Install(w *events.Worker) {
	c.residents.add(w.Owner, w.Name)
	c.ticker.install(w)
}

// Remove ends the schedules of a worker. It may be called from any goroutine and does not block.
func (c *Consumer) Remove(owner, worker string) {
	c.residents.remove(owner, worker)
	c.ticker.remove(owner, worker)
}

// OnTick has f called for every tick that this process makes from now on. f must not block.
func (c *Consumer) OnTick(f func(owner, worker, schedule string, tick time.Time)) {
	c.ticker.told.Store(&f)
}

func (t *ticker) install(w *events.Worker) {
	var list []*liveSchedule
	for _, s := range w.Schedules {
		spec, err := cron.Parse(s.Cron, s.TimeZone)
		if err != nil { // deploy has refused what it cannot parse; its time zones may be newer
			t.log.Error().Err(err).Str("worker", w.Target()).Str("schedule", s.Name).Msg("schedule cannot be computed; it does not tick")
			continue
		}
		live := newLiveSchedule(w, s)
		live.spec = spec
		list = append(list, live)
	}
	t.replace(w.Target(), list)
}

func (t *ticker) remove(owner, worker string) { t.replace(owner+"/"+worker, nil) }

// replace makes list what is live of a worker.
func (t *ticker) replace(target string, list []*liveSchedule) {
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
	t.nudge()
}

func (t *ticker) nudge() {
	signal(t.wake)
}

// run makes ticks until ctx is done.
func (t *ticker) run(ctx context.Context) {
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
		timer.Reset(min(max(next.Sub(t.now()), 0), time.Minute)) // clocks are set, too
	}
}

// tickers is how many schedules are dealt with at once.
const tickers = 16

// step makes the ticks that are due, and says when to look again.
func (t *ticker) step(ctx context.Context) time.Time {
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

// look deals with one schedule whose time to be looked at has come, and sets the next.
func (t *ticker) look(ctx context.Context, s *liveSchedule) {
	err := t.tick(ctx, s)
	switch {
	case err == nil:
		s.fails = 0
	case errors.Is(err, errTickTaken):
		s.known, s.next = false, t.now()
	case ctx.Err() == nil:
		s.known, s.next = false, t.now().Add(50*time.Millisecond<<min(s.fails, 6))
		s.fails++
		t.log.Warn().Err(err).Str("worker", s.owner+"/"+s.worker).Str("schedule", s.schedule.Name).Msg("tick could not be made; trying again")
	}
}

func (t *ticker) tick(ctx context.Context, s *liveSchedule) (err error) {
	if !s.known {
		if s.state, s.seq, err = t.store.read(ctx, s.owner, s.worker, s.schedule.Name); err != nil {
			return err
		}
		s.known = true
	}
	now := t.now()
	if s.newer() || s.state != nil && s.state.Paused {
		// Another version's schedule, for the moment that this process does not know it yet; or nobody's.
		s.known, s.next = false, s.spec.Next(now)
		s.next = earlier(s.next, now.Add(10*time.Second))
		return nil
	}
	base := s.base()
	ticks, last := plan(s.spec, s.schedule, base, now)
	if last.IsZero() {
		s.plan(base)
		return nil
	}
	if patience := standby(); s.state != nil && s.state.Node != t.node && now.Before(last.Add(patience)) {
		s.known, s.next = false, last.Add(patience)
		return nil
	}
	if len(ticks) > 0 && t.full(ctx, s.owner) {
		t.log.Warn().Str("worker", s.owner+"/"+s.worker).Str("schedule", s.schedule.Name).Time("tick", last).
			Msg("tick is left out: its owner has more events waiting than its share")
		ticks = nil
	}
	return t.make(ctx, s, ticks, last)
}

// standby is how long after a tick a process makes it, if another has made the last.
func standby() time.Duration { return tickStandby + rand.N(tickStandby) }

// plan sets when the next tick is due.
func (s *liveSchedule) plan(base time.Time) {
	if s.next = s.spec.Next(base); s.next.IsZero() {
		s.next = base.Add(365 * 24 * time.Hour)
	}
}

// make stores the events of ticks, as many at a time as JetStream takes together.
func (t *ticker) make(ctx context.Context, s *liveSchedule, ticks []time.Time, last time.Time) error {
	for {
		part, upTo := ticks, last
		if len(ticks) > tickBatch {
			part, upTo = ticks[:tickBatch], ticks[tickBatch-1]
		}
		if err := t.commit(ctx, s, part, upTo); err != nil {
			return err
		}
		t.made(len(part))
		if f := t.told.Load(); f != nil {
			for _, tick := range part {
				(*f)(s.owner, s.worker, s.schedule.Name, tick)
			}
		}
		if ticks = ticks[len(part):]; len(ticks) == 0 {
			s.plan(last)
			return nil
		}
	}
}

// commit stores a state and events. When that fails although the state stands, it is the event of an earlier tick that is in the way.
func (t *ticker) commit(ctx context.Context, s *liveSchedule, ticks []time.Time, last time.Time) error {
	st := s.after(last, t.node)
	st.Ticked = last.Unix()
	seq, err := t.store.commit(ctx, s, st, ticks)
	if errors.Is(err, errTickTaken) && len(ticks) > 0 && s.schedule.Overlap == events.OverlapForbid {
		_, now, err2 := t.store.read(ctx, s.owner, s.worker, s.schedule.Name)
		if err2 != nil {
			return err2
		}
		if now == s.seq {
			st.Skipped = last.Unix()
			t.log.Info().Str("worker", s.owner+"/"+s.worker).Str("schedule", s.schedule.Name).Time("tick", last).
				Msg("tick is left out: the event of the one before has not ended")
			seq, err = t.store.commit(ctx, s, st, nil)
		}
	}
	if err != nil {
		return err
	}
	s.state, s.seq = st, seq
	return nil
}

// noteRemoved notes that a schedule has ended, so that what comes after under its name does not make up for the time between.
func (t *ticker) noteRemoved(ctx context.Context, s *liveSchedule) {
	st, seq, err := t.store.read(ctx, s.owner, s.worker, s.schedule.Name)
	if err != nil || st == nil || st.Removed || st.Deployed > s.deployed {
		return // nobody can tell then from now on, but that its version is older
	}
	st.Removed = true
	s.seq = seq
	_, _ = t.store.commit(ctx, s, st, nil) // if it was changed meanwhile, somebody else has it live, or has noted it
}
