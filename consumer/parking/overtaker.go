package parking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/cancel"
	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

const (
	// overtakeLook is how often a process looks for lanes with a backlog. When a look takes long, the pause before the
	// next is overtakePart times as long.
	overtakeLook, overtakePart = 250 * time.Millisecond, 4
	// overtakeWait is the maximum time to look through one lane.
	overtakeWait = 2 * time.Second
	// overtakeStale is for how long a lane's position, as JetStream reports it, counts as current.
	overtakeStale = 50 * time.Millisecond
	// overtakeForget is for how long a position can be used to compute the lane's speed.
	overtakeForget = 5 * time.Second
	// 1/overtakeAhead of OvertakeConfig.Least is the minimum distance between the lane's position and an event that is
	// brought past the backlog. overtakeClear is the minimum time that the lane needs for that distance. An event that
	// may be delivered at any moment stays in its lane.
	overtakeAhead, overtakeClear = 2, 500 * time.Millisecond
)

// OvertakeConfig says when events overtake a backlog.
type OvertakeConfig struct {
	Prefix  events.Subjects
	Decoder events.Decoder
	// Least is the backlog that a lane must have for the events of owners with few events there to overtake it. 0:
	// never.
	Least int
	// Catalog has the workers of owners.
	Catalog *catalog.Catalog
	// Lanes are the names of the lanes' consumers.
	Lanes []string
	// Backlogged reports whether at least that many wait in a lane, as far as this process knows.
	Backlogged func(lane int) bool
	// Cancels is what is known of events that somebody cancels.
	Cancels *cancel.Notes
	// Copied, when it is not nil, is called when an event is parked and is still in its lane. Tests end the process
	// there.
	Copied func()
}

// Overtaker lets events of owners with few events overtake another owner's backlog in their lane: it parks them (ADR
// 0018). Make it with NewOvertaker, start it with Run.
type Overtaker struct {
	cfg       OvertakeConfig
	owners    *Owners
	js        jetstream.JetStream
	log       zerolog.Logger
	overtaken prometheus.Counter
}

// NewOvertaker makes an Overtaker.
func NewOvertaker(cfg OvertakeConfig, l *Owners, js jetstream.JetStream, log zerolog.Logger) *Overtaker {
	return &Overtaker{cfg: cfg, owners: l, js: js, log: log, overtaken: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "pinwheel_bypasses_total", Help: "Events brought past another owner's backlog in their lane.",
	})}
}

// Collectors are the metrics of the Overtaker.
func (b *Overtaker) Collectors() []prometheus.Collector { return []prometheus.Collector{b.overtaken} }

// Run lets events overtake backlogs until life ends.
func (b *Overtaker) Run(life context.Context) {
	if b.cfg.Least == 0 {
		return
	}
	var places [events.Lanes]position // by lane
	timer := time.NewTimer(overtakeLook)
	defer timer.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-timer.C:
		}
		began := time.Now()
		for i := range b.cfg.Lanes {
			if !b.cfg.Backlogged(i) || b.owners.cfg.Draining() || !b.js.Conn().IsConnected() {
				continue
			}
			ctx, stop := context.WithTimeout(life, overtakeWait)
			if err := b.lane(ctx, i, &places[i]); err != nil && ctx.Err() == nil {
				b.log.Debug().Err(err).Int("lane", i).Msg("events could not be brought past a backlog; trying again")
			}
			stop()
		}
		timer.Reset(max(overtakeLook, overtakePart*time.Since(began)))
	}
}

// lane looks through one lane. Several processes may do so at once.
func (b *Overtaker) lane(ctx context.Context, lane int, at *position) error {
	stream, err := b.js.Stream(ctx, events.StreamEvents)
	if err != nil {
		return err
	}
	if err := at.refresh(ctx, stream, b.cfg.Lanes[lane]); err != nil || !b.hasBacklog(at.pending) || at.speed < 0 {
		return err
	}
	few, err := b.findWithFew(ctx, lane, at, stream.CachedInfo().State.NumSubjects)
	if err != nil {
		return err
	}
	brought := 0
	defer func() {
		if b.overtaken.Add(float64(brought)); brought > 0 {
			b.owners.LookAgain()
		}
	}()
	for _, o := range few {
		n, err := b.overtakeOwner(ctx, stream, lane, o, at)
		if brought += n; err != nil {
			return err
		}
	}
	return nil
}

// overtakeOwner brings an owner's events past the backlog of a lane, at most as many as were counted, and returns how
// many it brought.
func (b *Overtaker) overtakeOwner(ctx context.Context, stream jetstream.Stream, lane int, o *ownerCount,
	at *position) (n int, err error) {
	looked := uint64(0)
	for _, subject := range o.subjects {
		for m, err := range stored.All(ctx, b.js.Conn(), events.StreamEvents, subject, b.safeFrom(at)) {
			if err == nil {
				err = at.refresh(ctx, stream, b.cfg.Lanes[lane])
			}
			if err != nil || at.speed < 0 || looked == o.n { // or the consumer was made again
				return n, err
			}
			looked++
			if m.Sequence < b.safeFrom(at) {
				continue
			}
			done, err := b.overtake(ctx, stream, m)
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

// hasBacklog reports whether so many messages wait in a lane that events may overtake them.
func (b *Overtaker) hasBacklog(pending uint64) bool {
	return b.cfg.Least > 0 && pending >= uint64(b.cfg.Least)
}

// safeFrom is the first sequence that the lane surely does not reach while an event is copied.
func (b *Overtaker) safeFrom(at *position) uint64 {
	return at.delivered + uint64(max(float64(b.cfg.Least)/overtakeAhead, at.speed*overtakeClear.Seconds()))
}

// overtake stores an event that was never delivered among the parked events, and then deletes it from its lane. A
// process that dies in between leaves both copies until the next look of any process. An event that must not leave its
// stream, or that is refused because of its headers, stays: then done is false.
func (b *Overtaker) overtake(ctx context.Context, stream jetstream.Stream, m *stored.Message) (done bool, err error) {
	origin := events.Origin{Stream: events.StreamEvents, Seq: m.Sequence, Subject: m.Subject, HeaderBytes: len(m.Block)}
	e, failure := b.cfg.Decoder.Decode(origin, events.Header(m.Header), m.Data, m.Time)
	if failure != nil || !e.DeliverAt.IsZero() || e.Overlaps() != events.OverlapAllow {
		return false, nil
	}
	id := cancel.ID{Stream: events.StreamEvents, Seq: m.Sequence, Stored: m.Time.UnixNano()}
	if !b.cfg.Cancels.Copy(id, time.Now()) {
		return false, nil
	}
	done, err = b.move(ctx, stream, m.Sequence, e)
	if b.cfg.Cancels.Copied(id, done, err != nil, time.Now()); err != nil {
		err = fmt.Errorf("event %d of stream %s: %w", m.Sequence, events.StreamEvents, err)
	}
	return done, err
}

// move stores e among the parked events, and deletes it from its lane. After an error it may be in both places.
func (b *Overtaker) move(ctx context.Context, stream jetstream.Stream, seq uint64,
	e *events.Event) (done bool, err error) {
	if _, err := b.js.PublishMsg(ctx, Message(e, events.FirstRun, "", b.cfg.Prefix, b.js.Conn().MaxPayload()),
		jetstream.WithRetryAttempts(0)); jsapi.IsRefused(err) {
		return false, nil // its headers leave no room for the headers of a parked event
	} else if err != nil {
		return false, err
	}
	if b.cfg.Copied != nil {
		b.cfg.Copied()
	}
	if err := stream.DeleteMsg(ctx, seq); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, err
	}
	return true, nil
}

// position is how far a lane's consumer has come.
type position struct {
	delivered uint64 // stream sequence of the last event delivered
	pending   uint64
	speed     float64 // sequences per second, the recent maximum; negative: not known
	asked     time.Time
	counting  counting
}

// refresh asks JetStream for the position, unless it is younger than overtakeStale.
func (p *position) refresh(ctx context.Context, stream jetstream.Stream, lane string) error {
	now := time.Now()
	since := now.Sub(p.asked)
	if since < overtakeStale {
		return nil
	}
	consumer, err := stream.Consumer(ctx, lane)
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
