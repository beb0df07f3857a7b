package main

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// noisyOwner has the backlog that the others must not feel.
	noisyOwner = "noisy"
	// longestNoise is how long quiet owners are measured beside a backlog that does not end.
	longestNoise = 30 * time.Minute
	// noiseLook is how often it is looked whether the backlog is over, which is when no more than noiseLeft events are left of all owners.
	noiseLook = time.Second
	noiseLeft = 200
)

// noisy measures quiet owners alone, and then beside an owner with a backlog, from when all of it is stored until it is over. At first the
// backlog is taken out of their way, so that has figures of its own.
func (r *runner) noisy(ctx context.Context, s *site, sc *scenario, c Case) (*Round, error) {
	noise := spin()
	if _, err := r.shelf.deploy(ctx, s.url, s.js, []part{noise}, func(int) string { return noisyOwner }, 1); err != nil {
		return nil, err
	}
	warm, quiet, n := warming(sc, c), int(float64(c.Rate)*c.Seconds), int(float64(c.Rate)*longestNoise.Seconds())
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
	noisy, over := s.whileNoisy(ctx)
	beside, err := l.runWhile(ctx, noisy, warm+quiet, n, c.Rate)
	if err := errors.Join(err, over()); err != nil {
		return nil, err
	}
	round := l.report(beside)
	round.Metrics["seconds"] = beside.to.at.Sub(beside.from.at).Seconds()
	round.Metrics["p99 first 5 s ms"] = beside.early.at(99)
	round.Metrics["p99 alone ms"] = alone.latency.at(99)
	round.Metrics["p99 beside/alone"] = beside.latency.at(99) / alone.latency.at(99)
	return round, errors.Join(l.judge.verdict(), s.dead(ctx))
}

// whileNoisy is done when less is left than quiet owners may have on their way. over tells what kept it from looking.
func (s *site) whileNoisy(ctx context.Context) (noisy context.Context, over func() error) {
	noisy, stop := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		defer stop()
		tick := time.NewTicker(noiseLook)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-noisy.Done():
				failed <- nil
				return
			}
			if left, err := s.left(noisy); noisy.Err() == nil && (err != nil || left < noiseLeft) {
				failed <- err
				return
			}
		}
	}()
	return noisy, func() error { stop(); return <-failed }
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
