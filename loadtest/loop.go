package main

import (
	"context"
	"fmt"
	"time"
)

// loop is an open loop run: events at a fixed rate. An event's latency counts from the time it was to be sent, so that a pause weighs
// for all events that it delayed, also those that were not sent because of it.
type loop struct {
	r     *runner
	site  *site
	judge *judge
	send  func(id int) error
	phase *phase // guarded by the judge's lock
}

// phase is a stretch of events at a rate.
type phase struct {
	first, events int // numbers
	start         time.Time
	interval      time.Duration
	latency, lag  *recorder
	early         *recorder // of events due within earlyFor
	from, to      reading
}

// earlyFor is how long the beginning of a phase is.
const earlyFor = 5 * time.Second

// warmOwners is up to how many owners are warmed with events of their own.
const warmOwners = 1000

// warming is how many events go before those that count.
func warming(sc *scenario, c Case) int {
	if !sc.warm {
		return 0
	}
	if sc.stream {
		return c.Rate
	}
	return max(c.Rate, 2*len(sc.parts)*min(c.Owners, warmOwners))
}

func (r *runner) newLoop(s *site, sc *scenario, c Case, events int) (*loop, error) {
	l := &loop{r: r, site: s, judge: newJudge(sc, events, c.System != ours)}
	s.refused = func(err error) { l.judge.note("%v", err) }
	l.judge.replied = l.replied
	if sc.stream {
		var err error
		l.send, err = newStreamer(s, sc, l.judge, c.Owners)
		return l, err
	}
	p := newPublisher(s, sc, c.Owners)
	l.send = p.publish
	return l, r.subscribe(s, p, l.judge)
}

func (r *runner) openLoop(ctx context.Context, s *site, sc *scenario, c Case) (*Round, error) {
	warm, n := warming(sc, c), int(float64(c.Rate)*c.Seconds)
	l, err := r.newLoop(s, sc, c, warm+n)
	if err != nil {
		return nil, err
	}
	if err := l.warm(ctx, warm, c.Rate); err != nil {
		return nil, err
	}
	var before, after warmth
	if c.Curve != "" {
		if before, err = s.fleet.warmth(ctx); err != nil {
			return nil, err
		}
	}
	p, err := l.run(ctx, warm, n, c.Rate)
	if err != nil {
		return nil, err
	}
	round := l.report(p)
	if c.Curve != "" {
		if after, err = s.fleet.warmth(ctx); err != nil {
			return nil, err
		}
		round.Metrics["warm %"] = after.since(before)
	}
	if err := s.settled(ctx, r.o.patience); err != nil {
		l.judge.note("%v", err)
	}
	return round, l.judge.verdict()
}

// warm sends the first events, not much faster than those that follow, and waits for their replies.
func (l *loop) warm(ctx context.Context, n, rate int) error {
	if n == 0 {
		return nil
	}
	interval := time.Second / time.Duration(max(rate, 500))
	if err := pace(ctx, time.Now(), interval, n, newRecorder(), l.send); err != nil {
		return err
	}
	return l.r.awaitReplies(ctx, l.site, l.judge, n)
}

// run sends n events from number first on and waits for their replies.
func (l *loop) run(ctx context.Context, first, n, rate int) (*phase, error) {
	return l.runWhile(ctx, ctx, first, n, rate)
}

// runWhile is run for the last n events. It sends no more of them when while is done.
func (l *loop) runWhile(ctx, while context.Context, first, n, rate int) (*phase, error) {
	l.site.meter.awaitQuiet(ctx, l.r.o.quiet)
	p := &phase{first: first, events: n, interval: time.Second / time.Duration(rate), latency: newRecorder(), lag: newRecorder(), early: newRecorder()}
	p.start = time.Now().Add(5 * time.Millisecond)
	l.judge.mu.Lock()
	l.phase = p
	l.judge.mu.Unlock()
	p.from = l.site.meter.read()
	sent := 0
	err := pace(while, p.start, p.interval, n, p.lag, func(i int) error {
		if i%100 == 0 {
			l.r.bar.count("running", i, n)
		}
		sent = i + 1
		return l.send(first + i)
	})
	if err != nil && (ctx.Err() != nil || while.Err() == nil) {
		return nil, fmt.Errorf("send: %w", err)
	}
	if sent < n {
		n = sent
		l.judge.mu.Lock()
		p.events, l.judge.sent = n, first+n
		l.judge.mu.Unlock()
	}
	err = l.r.awaitReplies(ctx, l.site, l.judge, first+n)
	p.to = l.site.meter.read()
	return p, err
}

// report is what was measured in a phase.
func (l *loop) report(p *phase) *Round {
	round := &Round{Metrics: map[string]float64{}, Redelivered: l.judge.again}
	round.Curve = p.latency.report(round.Metrics)
	round.Metrics["lag p99 ms"] = p.lag.at(99)
	l.site.meter.report(round.Metrics, p.from, p.to, p.events)
	return round
}

// replied is called with the judge's lock held.
func (l *loop) replied(id int, at time.Time) {
	p := l.phase
	if p == nil || id < p.first || id >= p.first+p.events {
		return
	}
	due := time.Duration(id-p.first) * p.interval
	took := at.Sub(p.start.Add(due))
	p.latency.record(took)
	if due < earlyFor {
		p.early.record(took)
	}
}
