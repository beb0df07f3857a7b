package consumer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/attempts"
	"github.com/pinwheel-run/pinwheel/consumer/bodies"
	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/parking"
	"github.com/pinwheel-run/pinwheel/consumer/results"
	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// stores are the packages that store, find and park for the settle goroutine. They know JetStream, but not the events
// in flight.
type stores struct {
	attempts     *attempts.Store
	claims       *deadletter.Claims
	letters      *deadletter.Writer
	letterRounds *jsapi.Rounds // in which letters are written
	notifier     *deadletter.Notifier
	results      *results.Store
	parked       *parking.Owners
	parker       *parking.Parker
	delays       *schedule.Delays
	waiting      *schedule.Waiting
	replacer     *schedule.Replacer
	chunks       *bodies.Chunks
	parts        *bodies.Parts
}

// finisher ends events: it acks, gives back and publishes replies. All its methods run on the settle goroutine.
type finisher struct {
	stores
	cfg      Config
	api      *jsapi.Client
	log      zerolog.Logger
	metrics  *metrics
	inflight *inflight
	clock    *jsapi.Clock
	acks     *acks
	replies  replier
	output   workerLog
	absences *atomic.Uint64 // how often leases may have ended because the process was paused or had no connection
}

// settler owns the settle goroutine, on which events are checked, settled and ended. All its methods run there, except
// add and run.
type settler struct {
	finisher
	recorder
	dispatcher Dispatcher
	retries    *retries
	draining   *atomic.Bool
	overdue    overdue
	reconnects uint64 // of the connection, when the loop last checked

	mu      sync.Mutex
	settled []lifecycle.Settlement // to be carried out
}

// add queues settlements. It may be called from any goroutine.
func (s *settler) add(batch []lifecycle.Settlement) {
	s.mu.Lock()
	s.settled = append(s.settled, batch...)
	s.mu.Unlock()
	jsapi.Signal(s.api.Wake)
}

// settleTick is how often requests are checked for being late.
const settleTick = 50 * time.Millisecond

// run is the settle goroutine.
func (s *settler) run(life context.Context) {
	tick := time.NewTicker(settleTick)
	defer tick.Stop()
	var settled []lifecycle.Settlement
	var tasks []func()
	for {
		select {
		case <-life.Done():
			return
		case <-s.api.Wake:
		case m := <-s.acks.awaited():
			s.acks.requests.Answer(m)
		case now := <-tick.C:
			s.acks.expire(now)
			s.api.Expire(now)
			s.chunks.Tick(now)
			s.tickRounds(now)
			s.overdue.tick(now)
		}
		// Settlements are taken before tasks, so that a task that was there before a settlement is run before it.
		// Without a connection a reply could be lost in a dead socket's buffer, so settlements wait.
		if s.api.NC.IsConnected() {
			s.mu.Lock()
			settled, s.settled = s.settled, settled[:0]
			s.mu.Unlock()
		}
		tasks = s.api.Take(tasks)
		s.acks.take()
		s.reconnects = s.api.NC.Stats().Reconnects
		for _, f := range tasks {
			f()
		}
		for i := range settled {
			s.settle(settled[i])
		}
		s.acks.send()
		clear(tasks)
		clear(settled)
		tasks, settled = tasks[:0], settled[:0]
	}
}

// carryOutOrder does what dispatch asks for with h, about which there is no verdict.
func (s *settler) carryOutOrder(h *entry, o lifecycle.Order) {
	switch o {
	case lifecycle.Return:
		s.giveBack(h)
	case lifecycle.Park:
		s.parkEvent(h)
	case lifecycle.Watch, lifecycle.WatchAlone:
		s.watch(h, o == lifecycle.WatchAlone)
	case lifecycle.NoOrder, lifecycle.Share: // settle has handled them
	}
}

// watch notes in the event's record that it is about to run, and submits it again when that is stored. If the process
// then dies before the record says otherwise, it died while this event ran.
func (s *settler) watch(h *entry, alone bool) {
	s.inflight.move(h, storing)
	s.begins(h, alone, func() {
		h.event.Watched = true
		if s.inflight.move(h, running, storing) {
			s.dispatcher.Submit([]*lifecycle.Delivery{&h.event})
		}
	})
}

// unwatch notes that h, a watched event, no longer runs. It returns true if that must be stored first. Then the
// settlement is carried out again after that, without its reply.
func (s *settler) unwatch(h *entry, x lifecycle.Settlement) bool {
	h.rest()
	if v := x.Outcome.Verdict; v != lifecycle.Ack && v != lifecycle.Dead {
		return false // their records are stored anyway
	}
	if h.idempotent && x.Reply != nil {
		h.answer = x.Reply // the result must still be stored
	}
	x.Reply = nil
	s.save(h, func() { s.carryOut(h, x) })
	return true
}

// replace ends the events of earlier ticks in this process: those that wait at once, and those that run as soon as they
// can be interrupted.
func (s *settler) replace(n schedule.ReplaceNotice) {
	older := func(h *entry) bool { return h.from.stream == events.StreamSchedules && n.Replaces(&h.event.Event) }
	for _, h := range s.inflight.in(waiting) {
		if older(h) {
			s.retries.drop(h)
			s.endReplaced(h)
		}
	}
	for _, h := range s.inflight.in(running) {
		if older(h) && h.event.Halt != nil {
			h.replaced = true
			h.event.Halt.Fire()
		}
	}
}

// orphan forgets events whose stream no longer exists. Nothing more is published about them: not to the stream, which
// may have other events under their numbers, not to the bucket of attempts, and not to their requesters.
func (s *settler) orphan(batch []*entry) {
	if guard.StreamLife.Off() {
		return
	}
	for _, h := range batch {
		s.retries.drop(h)
		s.metrics.lost.Inc()
	}
	s.inflight.orphan(batch)
}

// leaseLost forgets an event whose end could not be confirmed: it will be delivered again.
func (s *finisher) leaseLost(h *entry) {
	s.log.Warn().Str("event", h.event.ID).Str("worker", h.event.Target()).Uint64("seq", h.event.Origin.Seq).
		Msg("end of an event was not confirmed before its lease ended; it will be delivered again")
	s.metrics.lost.Inc()
	s.inflight.remove(h)
}

// again calls f again later, for h. It returns false when h's lease is over.
func (s *finisher) again(h *entry, f func()) bool {
	if h.tries == nil {
		h.tries = jsapi.NewRetrier(s.cfg.AckWait)
	}
	return s.api.Retry(h.tries, f)
}

// step notifies a test of a step.
func (s *finisher) step(at Step) {
	if s.cfg.Step != nil {
		s.cfg.Step(at)
	}
}
