package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pinwheel-run/pinwheel/loadtest/machine"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

// drain is a saturation run: the stream is filled, and then its consumers are started. The time before a fifth of the
// replies is warm-up and not counted. In a case without warm-up, counting begins with the first reply, because a paused
// consumer may take a second to resume. In a case with Pending, that many events are stored at the start, and one more
// for each reply. When all counted events are answered, the rest is drained and checked like all others.
type drain struct {
	runner   *runner
	testbed  *testbed
	verifier *verifier
	pub      *publisher

	filled      int           // number of events stored at the start
	answered    chan struct{} // receives a value for each reply that a new event follows; nil: there are none
	first, last int           // numbers of replies at which counting begins and ends

	from, to machine.Reading // readings at those moments
}

func (r *runner) saturate(ctx context.Context, s *testbed, sc *scenario, c report.Case) (*report.Round, error) {
	d := r.newDrain(s, sc, c)
	s.refused = func(err error) { d.verifier.note("%v", err) }
	d.verifier.replied = func(int, time.Time) { d.watch() }
	if err := r.subscribe(s, d.pub, d.verifier); err != nil {
		return nil, err
	}
	if err := d.fill(ctx); err != nil {
		return nil, err
	}
	// A cluster needs a moment to pause; the few events that run meanwhile belong to the warm-up.
	if n, _ := d.verifier.progress(); n > c.Events/50 {
		return nil, fmt.Errorf("%d of %d events ran while the consumers were paused", n, c.Events)
	}
	s.meter.AwaitQuiet(ctx, r.o.quiet)
	if err := s.pause(ctx, false); err != nil {
		return nil, err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	refilled := d.refill(working)
	err := r.awaitReplies(ctx, s, d.verifier, d.verifier.events)
	stop()
	if err := errors.Join(err, <-refilled); err != nil {
		return nil, err
	}
	return d.report(ctx, r.o.patience)
}

func (r *runner) newDrain(s *testbed, sc *scenario, c report.Case) *drain {
	d := &drain{runner: r, testbed: s, pub: newPublisher(s, sc, c.Owners), filled: c.Events, first: 1, last: c.Events}
	if sc.warm {
		d.first = c.Events / 5
	}
	if c.Pending > 0 {
		d.filled, d.answered = c.Pending, make(chan struct{}, c.Events)
	}
	d.verifier = newVerifier(sc, d.filled+cap(d.answered), c.System != report.Ours)
	return d
}

// fill stores the first events while no consumer delivers.
func (d *drain) fill(ctx context.Context) error {
	if err := d.testbed.pause(ctx, true); err != nil {
		return err
	}
	for id := range d.filled {
		if err := d.pub.publish(id); err != nil {
			return fmt.Errorf("publish event %d: %w", id, err)
		}
		if id%1024 == 0 {
			d.runner.bar.count("filling", id, d.filled)
		}
	}
	return d.pub.flush(d.runner.o.patience)
}

// refill publishes an event for each reply, until there are enough or ctx ends. The channel delivers the result once.
func (d *drain) refill(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	if d.answered == nil {
		done <- nil
		return done
	}
	go func() {
		for id := d.filled; id < d.verifier.events; id++ {
			select {
			case <-d.answered:
			case <-ctx.Done():
				done <- nil
				return
			}
			if err := d.pub.publish(id); err != nil {
				done <- fmt.Errorf("publish event %d: %w", id, err)
				return
			}
		}
		done <- nil
	}()
	return done
}

// watch takes the readings. The verifier's lock is held, so they are ordered.
func (d *drain) watch() {
	if n := d.verifier.answered; n <= cap(d.answered) {
		d.answered <- struct{}{} // the channel has room for all
	}
	switch d.verifier.answered {
	case d.last:
		d.to = d.testbed.meter.Read()
	case d.first:
		d.from = d.testbed.meter.Read()
	}
}

func (d *drain) report(ctx context.Context, patience time.Duration) (*report.Round, error) {
	round := &report.Round{Metrics: map[string]float64{}, Redelivered: d.verifier.again}
	counted := d.last - d.first
	round.Metrics["events/s"] = float64(counted) / d.to.At.Sub(d.from.At).Seconds()
	round.Metrics["seconds"] = d.to.At.Sub(d.from.At).Seconds()
	d.testbed.meter.Report(round.Metrics, d.from, d.to, counted)
	if err := d.testbed.settled(ctx, patience); err != nil {
		d.verifier.note("%v", err)
	}
	return round, d.verifier.verdict() // after settled: by now any duplicate reply has arrived
}
