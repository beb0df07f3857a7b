package main

import (
	"context"
	"fmt"
	"time"
)

// drain is a saturation run: the stream is filled, then its consumers are let go. What comes before a fifth of the replies
// is there is warming up, and not counted. Where nothing is to be warm, counting begins with the first reply: a consumer that was
// paused may take a second to go on.
type drain struct {
	site  *site
	judge *judge
	meter *meter

	from    reading // warm from here on
	to      reading // the last reply
	counted int     // events between the two
}

func (r *runner) saturate(ctx context.Context, s *site, sc *scenario, c Case) (*Round, error) {
	d := &drain{site: s, judge: newJudge(sc, c.Events, c.System != ours), meter: s.meter, counted: c.Events - 1}
	if sc.warm {
		d.counted = c.Events - c.Events/5
	}
	s.refused = func(err error) { d.judge.note("%v", err) }
	d.judge.replied = func(int, time.Time) { d.watch() }
	p := newPublisher(s, sc, c.Owners)
	if err := r.subscribe(s, p, d.judge); err != nil {
		return nil, err
	}
	if err := s.pause(ctx, true); err != nil {
		return nil, err
	}
	for id := range c.Events {
		if err := p.publish(id); err != nil {
			return nil, fmt.Errorf("publish event %d: %w", id, err)
		}
		if id%1024 == 0 {
			r.bar.count("filling", id, c.Events)
		}
	}
	if err := p.flush(r.o.patience); err != nil {
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
	if err := r.awaitReplies(ctx, s, d.judge, c.Events); err != nil {
		return nil, err
	}
	return d.report(ctx, r.o.patience)
}

// watch takes the readings. The judge's lock is held, so they are ordered.
func (d *drain) watch() {
	switch d.judge.answered {
	case d.judge.events:
		d.to = d.meter.read()
	case d.judge.events - d.counted:
		d.from = d.meter.read()
	}
}

func (d *drain) report(ctx context.Context, patience time.Duration) (*Round, error) {
	round := &Round{Metrics: map[string]float64{}, Redelivered: d.judge.again}
	round.Metrics["events/s"] = float64(d.counted) / d.to.at.Sub(d.from.at).Seconds()
	round.Metrics["seconds"] = d.to.at.Sub(d.from.at).Seconds()
	d.meter.report(round.Metrics, d.from, d.to, d.counted)
	if err := d.site.settled(ctx, patience); err != nil {
		d.judge.note("%v", err)
	}
	return round, d.judge.verdict() // after settled: a reply that comes twice has come by now
}
