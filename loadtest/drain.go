package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// drain is a saturation run: the stream is filled, then its consumers are let go. What comes before a fifth of the replies
// is there is warming up, and not counted. Where nothing is to be warm, counting begins with the first reply: a consumer that was
// paused may take a second to go on. In a case with Pending so many events are stored in the beginning, and for each reply
// one more; when as many are answered as count, what is left is drained, and judged as all others.
type drain struct {
	runner *runner
	site   *site
	judge  *judge
	pub    *publisher

	filled      int           // events that are there in the beginning
	answered    chan struct{} // one for each reply that is followed by an event; nil: no such
	first, last int           // how many replies there are when counting begins and ends

	from, to reading // then
}

func (r *runner) saturate(ctx context.Context, s *site, sc *scenario, c Case) (*Round, error) {
	d := r.newDrain(s, sc, c)
	s.refused = func(err error) { d.judge.note("%v", err) }
	d.judge.replied = func(int, time.Time) { d.watch() }
	if err := r.subscribe(s, d.pub, d.judge); err != nil {
		return nil, err
	}
	if err := d.fill(ctx); err != nil {
		return nil, err
	}
	// A cluster takes a moment to pause; the few events that run meanwhile belong to the warming up.
	if n, _ := d.judge.progress(); n > c.Events/50 {
		return nil, fmt.Errorf("%d of %d events ran while the consumers were paused", n, c.Events)
	}
	s.meter.awaitQuiet(ctx, r.o.quiet)
	if err := s.pause(ctx, false); err != nil {
		return nil, err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	refilled := d.refill(working)
	err := r.awaitReplies(ctx, s, d.judge, d.judge.events)
	stop()
	if err := errors.Join(err, <-refilled); err != nil {
		return nil, err
	}
	return d.report(ctx, r.o.patience)
}

func (r *runner) newDrain(s *site, sc *scenario, c Case) *drain {
	d := &drain{runner: r, site: s, pub: newPublisher(s, sc, c.Owners), filled: c.Events, first: 1, last: c.Events}
	if sc.warm {
		d.first = c.Events / 5
	}
	if c.Pending > 0 {
		d.filled, d.answered = c.Pending, make(chan struct{}, c.Events)
	}
	d.judge = newJudge(sc, d.filled+cap(d.answered), c.System != ours)
	return d
}

// fill stores the first events while no consumer delivers.
func (d *drain) fill(ctx context.Context) error {
	if err := d.site.pause(ctx, true); err != nil {
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

// refill publishes an event for each reply, until there are enough or ctx ends. What it returns tells how that went, once.
func (d *drain) refill(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	if d.answered == nil {
		done <- nil
		return done
	}
	go func() {
		for id := d.filled; id < d.judge.events; id++ {
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

// watch takes the readings. The judge's lock is held, so they are ordered.
func (d *drain) watch() {
	if n := d.judge.answered; n <= cap(d.answered) {
		d.answered <- struct{}{} // there is room for all
	}
	switch d.judge.answered {
	case d.last:
		d.to = d.site.meter.read()
	case d.first:
		d.from = d.site.meter.read()
	}
}

func (d *drain) report(ctx context.Context, patience time.Duration) (*Round, error) {
	round := &Round{Metrics: map[string]float64{}, Redelivered: d.judge.again}
	counted := d.last - d.first
	round.Metrics["events/s"] = float64(counted) / d.to.at.Sub(d.from.at).Seconds()
	round.Metrics["seconds"] = d.to.at.Sub(d.from.at).Seconds()
	d.site.meter.report(round.Metrics, d.from, d.to, counted)
	if err := d.site.settled(ctx, patience); err != nil {
		d.judge.note("%v", err)
	}
	return round, d.judge.verdict() // after settled: a reply that comes twice has come by now
}
