package main

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
)

// noisyOwner has the backlog that the others must not feel.
const noisyOwner = "noisy"

// noisy measures quiet owners alone, and then beside an owner with a backlog that outlasts them, from when all of it is stored. At first the
// backlog is taken out of their way, so that has figures of its own. Alone they are measured for a third of the time.
func (r *runner) noisy(ctx context.Context, s *site, sc *scenario, c Case) (*Round, error) {
	noise := spin()
	if _, err := r.shelf.deploy(ctx, s.url, s.js, []part{noise}, func(int) string { return noisyOwner }, 1); err != nil {
		return nil, err
	}
	warm, n := warming(sc, c), int(float64(c.Rate)*c.Seconds)
	quiet := max(1, n/3)
	l, err := r.newLoop(s, sc, c, warm+quiet+n)
	if err != nil {
		return nil, err
	}
	if err := l.warm(ctx, warm, c.Rate); err != nil {
		return nil, err
	}
	alone, err := l.run(ctx, warm, quiet, c.Rate)
	if err != nil {
		return nil, err
	}
	if err := r.fillNoise(s, noise, sc.noise); err != nil {
		return nil, err
	}
	beside, err := l.run(ctx, warm+quiet, n, c.Rate)
	if err != nil {
		return nil, err
	}
	round := l.report(beside)
	round.Metrics["p99 first 5 s ms"] = beside.early.at(99)
	round.Metrics["p99 alone ms"] = alone.latency.at(99)
	round.Metrics["p99 beside/alone"] = beside.latency.at(99) / alone.latency.at(99)
	return round, errors.Join(l.judge.verdict(), r.stillNoisy(ctx, s))
}

// fillNoise publishes n events that nobody waits for.
func (r *runner) fillNoise(s *site, p part, n int) error {
	subject := events.Subjects(events.DefaultPrefix).Event(p.kind, noisyOwner, p.name())
	for i := range n {
		if _, err := s.js.PublishMsgAsync(&nats.Msg{Subject: subject, Data: p.body(nil, i)}, jetstream.WithStallWait(publishPatience)); err != nil {
			return err
		}
		if i%1024 == 0 {
			r.bar.count("noise", i, n)
		}
	}
	return (&publisher{js: s.js}).flush(r.o.patience)
}

// stillNoisy is an error when the backlog did not last.
func (r *runner) stillNoisy(ctx context.Context, s *site) error {
	left, err := s.left(ctx)
	if err := errors.Join(err, s.dead(ctx)); err != nil {
		return err
	}
	if left == 0 {
		return errors.New("the backlog was over before the quiet owners' time: ask for a shorter --duration")
	}
	return nil
}
