package main

import (
	"context"
	"fmt"
	"time"

	"github.com/pinwheel-run/pinwheel/loadtest/machine"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

// loop is an open loop run: events at a fixed rate. An event's latency counts from the time at which it was due. So a
// pause counts for all events that it delayed, including those that were sent late because of it.
type loop struct {
	r        *runner
	testbed  *testbed
	verifier *verifier
	send     func(id int) error
	phase    *phase // guarded by the verifier's lock
}

// phase is a sequence of events at one rate.
type phase struct {
	first, events int // numbers
	start         time.Time
	interval      time.Duration
	latency, lag  *report.Recorder
	early         *report.Recorder // latencies of events due within earlyFor
	from, to      machine.Reading
}

// earlyFor is the length of the beginning of a phase.
const earlyFor = 5 * time.Second

// warmOwners is the highest number of owners that get warm-up events of their own.
const warmOwners = 1000

// warming is the number of events before the counted ones.
func warming(sc *scenario, c report.Case) int {
	if !sc.warm {
		return 0
	}
	if sc.stream {
		return c.Rate
	}
	return max(c.Rate, 2*len(sc.parts)*min(c.Owners, warmOwners))
}

func (r *runner) newLoop(s *testbed, sc *scenario, c report.Case, events int) (*loop, error) {
	l := &loop{r: r, testbed: s, verifier: newVerifier(sc, events, c.System != report.Ours)}
	s.refused = func(err error) { l.verifier.note("%v", err) }
	l.verifier.replied = l.replied
	if sc.stream {
		var err error
		l.send, err = newStreamer(s, sc, l.verifier, c.Owners)
		return l, err
	}
	p := newPublisher(s, sc, c.Owners)
	l.send = p.publish
	return l, r.subscribe(s, p, l.verifier)
}

func (r *runner) openLoop(ctx context.Context, s *testbed, sc *scenario, c report.Case) (*report.Round, error) {
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
		l.verifier.note("%v", err)
	}
	return round, l.verifier.verdict()
}

// warm sends the first events, not much faster than the following ones, and waits for their replies.
func (l *loop) warm(ctx context.Context, n, rate int) error {
	if n == 0 {
		return nil
	}
	interval := time.Second / time.Duration(max(rate, 500))
	if err := machine.Pace(ctx, time.Now(), interval, n, report.NewRecorder(), l.send); err != nil {
		return err
	}
	return l.r.awaitReplies(ctx, l.testbed, l.verifier, n)
}

// run sends n events, from number first on, and waits for their replies.
func (l *loop) run(ctx context.Context, first, n, rate int) (*phase, error) {
	return l.runWhile(ctx, ctx, first, n, rate)
}

// runWhile does what run does for the last n events. It stops sending when while is done.
func (l *loop) runWhile(ctx, while context.Context, first, n, rate int) (*phase, error) {
	l.testbed.meter.AwaitQuiet(ctx, l.r.o.quiet)
	p := &phase{first: first, events: n, interval: time.Second / time.Duration(rate), latency: report.NewRecorder(),
		lag: report.NewRecorder(), early: report.NewRecorder()}
	p.start = time.Now().Add(5 * time.Millisecond)
	l.verifier.mu.Lock()
	l.phase = p
	l.verifier.mu.Unlock()
	p.from = l.testbed.meter.Read()
	sent := 0
	err := machine.Pace(while, p.start, p.interval, n, p.lag, func(i int) error {
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
		l.verifier.mu.Lock()
		p.events, l.verifier.sent = n, first+n
		l.verifier.mu.Unlock()
	}
	err = l.r.awaitReplies(ctx, l.testbed, l.verifier, first+n)
	p.to = l.testbed.meter.Read()
	return p, err
}

// report returns the measurements of a phase.
func (l *loop) report(p *phase) *report.Round {
	round := &report.Round{Metrics: map[string]float64{}, Redelivered: l.verifier.again}
	round.Curve = p.latency.Report(round.Metrics)
	round.Metrics["lag p99 ms"] = p.lag.At(99)
	l.testbed.meter.Report(round.Metrics, p.from, p.to, p.events)
	return round
}

// replied is called with the verifier's lock held.
func (l *loop) replied(id int, at time.Time) {
	p := l.phase
	if p == nil || id < p.first || id >= p.first+p.events {
		return
	}
	due := time.Duration(id-p.first) * p.interval
	took := at.Sub(p.start.Add(due))
	p.latency.Record(took)
	if due < earlyFor {
		p.early.Record(took)
	}
}
