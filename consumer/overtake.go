package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/stored"
)

const (
	// overtakeLook is how often a process looks for lanes with a backlog; where that takes long, it is at most a part of the time.
	overtakeLook, overtakePart = 250 * time.Millisecond, 4
	// overtakeWait is how long it may take to look through one.
	overtakeWait = 2 * time.Second
	// overtakeStale is how long what JetStream says of the place of a lane is taken for true.
	overtakeStale = 50 * time.Millisecond
	// overtakeForget is for how long it says anything of the lane's speed.
	overtakeForget = 5 * time.Second
	// overtakeAhead is the part of Config.Overtake that must lie between the lane's place and an event, and overtakeClear how long the lane
	// must need for what does: one that may be delivered at any moment stays where it is.
	overtakeAhead, overtakeClear = 2, 500 * time.Millisecond
)

// overtakeLoop brings events of owners that have few past the backlog of another in their lane, by way of the parked events (ADR 0018).
func (c *Consumer) overtakeLoop(life context.Context) {
	if c.cfg.Overtake == 0 {
		return
	}
	var places [events.Lanes]place // by lane
	timer := time.NewTimer(overtakeLook)
	defer timer.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		for i, l := range c.puller.lanes[:events.Lanes] { // which never change
			if !l.far.Load() || c.draining.Load() || !c.nc.IsConnected() {
				continue
			}
			ctx, cancel := context.WithTimeout(life, overtakeWait)
			if err := c.overtake(ctx, i, &places[i]); err != nil && ctx.Err() == nil {
				c.log.Debug().Err(err).Int("lane", i).Msg("events could not be brought past a backlog; trying again")
			}
			cancel()
		}
		timer.Reset(max(overtakeLook, overtakePart*time.Since(began)))
	}
}

// overtake looks through one lane. Several processes may do so at once.
func (c *Consumer) overtake(ctx context.Context, lane int, at *place) error {
	stream, err := c.js.Stream(ctx, StreamEvents)
	if err != nil {
		return err
	}
	if err := at.refresh(ctx, stream, lane); err != nil || !c.isFar(at.pending) || at.speed < 0 {
		return err
	}
	few, err := c.fewIn(ctx, lane, at, stream.CachedInfo().State.NumSubjects)
	if err != nil {
		return err
	}
	brought := 0
	defer func() {
		if c.metrics.overtook.Add(float64(brought)); brought > 0 {
			c.lookAgain()
		}
	}()
	for _, o := range few {
		n, err := c.bringOwner(ctx, stream, lane, o, at)
		if brought += n; err != nil {
			return err
		}
	}
	return nil
}

// bringOwner brings the events of an owner past the backlog of a lane, no more than were counted, and returns how many those were.
func (c *Consumer) bringOwner(ctx context.Context, stream jetstream.Stream, lane int, o *ownerCount, at *place) (n int, err error) {
	looked := uint64(0)
	for _, subject := range o.subjects {
		for m, err := range stored.All(ctx, c.nc, StreamEvents, subject, c.clear(at)) {
			if err == nil {
				err = at.refresh(ctx, stream, lane)
			}
			if err != nil || at.speed < 0 || looked == o.n { // or the consumer was made again
				return n, err
			}
			looked++
			if m.Sequence < c.clear(at) {
				continue
			}
			done, err := c.bringPast(ctx, stream, m)
			if err != nil {
				return n, err
			}
			if done {
				n++
			}
		}
	}
	return n, nil
}

// isFar reports whether so many messages wait in a lane that events may overtake.
func (c *Consumer) isFar(pending uint64) bool {
	return c.cfg.Overtake > 0 && pending >= uint64(c.cfg.Overtake) //nolint:gosec // never negative
}

// clear is the first sequence that the lane does not reach while an event is copied.
func (c *Consumer) clear(at *place) uint64 {
	return at.delivered + uint64(max(float64(c.cfg.Overtake)/overtakeAhead, at.speed*overtakeClear.Seconds()))
}

// bringPast stores an event that was never delivered among the parked, and then deletes it in its lane. Whoever dies in between leaves
// both, until the next look of any process. What must not leave its stream, or has ended by its headers alone, stays: done is false.
func (c *Consumer) bringPast(ctx context.Context, stream jetstream.Stream, m *stored.Message) (done bool, err error) {
	origin := events.Origin{Stream: StreamEvents, Seq: m.Sequence, Subject: m.Subject}
	e, failure := c.decoder.Decode(origin, events.Header(m.Header), m.Data, m.Time)
	if failure != nil || !e.DeliverAt.IsZero() || e.Overlaps() != events.OverlapAllow {
		return false, nil
	}
	if _, err := c.js.PublishMsg(ctx, c.parkedMsg(e), jetstream.WithRetryAttempts(0)); isRefused(err) {
		return false, nil // its headers leave no room for those of a parked event
	} else if err != nil {
		return false, fmt.Errorf("event %d of stream %s: %w", m.Sequence, StreamEvents, err)
	}
	c.step(StepOvertaken)
	if err := stream.DeleteMsg(ctx, m.Sequence); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, fmt.Errorf("event %d of stream %s: %w", m.Sequence, StreamEvents, err)
	}
	return true, nil
}

// place is how far a lane's consumer has got.
type place struct {
	delivered uint64 // stream sequence of the last event delivered
	pending   uint64
	speed     float64 // sequences a second, the most lately; negative: not known
	asked     time.Time
	counting  counting
}

// refresh asks JetStream, unless it has just said.
func (p *place) refresh(ctx context.Context, stream jetstream.Stream, lane int) error {
	now := time.Now()
	since := now.Sub(p.asked)
	if since < overtakeStale {
		return nil
	}
	consumer, err := stream.Consumer(ctx, laneName(lane))
	if err != nil {
		return err
	}
	info := consumer.CachedInfo()
	switch moved := float64(info.Delivered.Stream) - float64(p.delivered); {
	case since > overtakeForget || moved < 0:
		p.speed = -1
	default:
		p.speed = max(moved/since.Seconds(), p.speed/2)
	}
	p.delivered, p.pending, p.asked = info.Delivered.Stream, info.NumPending, now
	return nil
}
