package consumer

import (
	"context"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

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
			s.parker.Round(now)
			s.letterRounds.Tick(now)
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
