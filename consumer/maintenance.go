package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// maintenance makes sure that the streams and consumers exist. It creates lost ones again, and detects when another
// client has.
type maintenance struct {
	cfg     Config
	nc      *nats.Conn
	js      jetstream.JetStream
	log     zerolog.Logger
	clock   *jsapi.Clock
	loop    *jsapi.Loop
	lanes   []*lane
	settler *settler
	created creationTimes // of run

	lost      chan struct{} // streams or consumers may be missing
	suspect   chan struct{} // a stream may have been replaced
	recreated chan struct{} // streams and consumers exist again
}

func newMaintenance(c *Consumer) *maintenance {
	return &maintenance{
		cfg: c.cfg, nc: c.nc, js: c.js, log: c.log, clock: &c.clock, loop: c.api.Loop, lanes: c.puller.lanes,
		settler: c.settler, created: make(creationTimes),
		lost: make(chan struct{}, 1), suspect: make(chan struct{}, 1), recreated: make(chan struct{}, 1),
	}
}

// create tries until the assets exist or ctx is done: at start NATS may not be reachable.
func (u *maintenance) create(ctx context.Context, onlyMissing bool) error {
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	// Note the creation times before events of the current streams are in flight.
	if err := u.noteCreated(limited); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		u.log.Debug().Err(err).Msg("creation times of streams could not be looked up")
	}
	if err := createAssets(limited, &resources.Reconciler{JS: u.js, OnlyMissing: onlyMissing, Log: u.log}, u.cfg,
		u.nc.MaxPayload()); err != nil {
		return err
	}
	return u.retryNoteCreated(limited)
}

// recreate asks run to make sure that the assets exist.
func (u *maintenance) recreate() {
	jsapi.Signal(u.lost)
}

// afterDeletion is how long run waits before it creates assets again.
const afterDeletion = 200 * time.Millisecond

// run creates lost streams and consumers again, and detects when another client has.
func (u *maintenance) run(life context.Context) {
	tick := time.NewTicker(u.cfg.AckWait / 3)
	defer tick.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-tick.C:
			if !u.anyMissing(life) {
				continue
			}
		case <-u.suspect:
			if !u.anyMissing(life) {
				continue
			}
		case <-u.lost:
		}
		select { // a deletion should be complete before assets are created again
		case <-life.Done():
			return
		case <-time.After(afterDeletion):
		}
		tries := jsapi.NewRetrier(0)
		for life.Err() == nil {
			err := u.create(life, true)
			if err == nil {
				break
			}
			u.log.Warn().Err(err).Msg("streams and consumers could not be checked; trying again")
			wait, _ := tries.Next()
			select {
			case <-life.Done():
			case <-time.After(wait):
			}
		}
		jsapi.Signal(u.recreated)
	}
}

// creationTimes has the creation times of the streams whose events are acked, by the clock of the server. An ack names
// only a sequence, so an ack of an event of a deleted stream may ack an event of the stream that was created in its
// place. When this fleet creates a stream again, no sequence is used again (ADR 0019). When another client does, each
// process forgets the events of the old stream as soon as it detects that.
type creationTimes map[string]time.Time

// infoPatience is how long the answer about one stream may take: a request may be lost while servers elect a leader.
const infoPatience = 2 * time.Second

// noteCreated reads the creation times of the streams. Its error is jetstream.ErrStreamNotFound when one is missing.
func (u *maintenance) noteCreated(ctx context.Context) (err error) {
	for _, name := range [...]string{events.StreamEvents, events.StreamParked, events.StreamSchedules} {
		if e := u.noteCreatedOf(ctx, name); e != nil {
			err = errors.Join(err, fmt.Errorf("consumer: stream %s: %w", name, e))
		}
	}
	return err
}

func (u *maintenance) noteCreatedOf(ctx context.Context, name string) error {
	var epochs [events.Lanes + events.DueLanes]uint64
	for i, l := range u.lanes { // the list never changes
		epochs[i] = l.src.epoch.Load()
	}
	ctx, cancel := context.WithTimeout(ctx, infoPatience)
	defer cancel()
	asked := time.Now()
	s, err := u.js.Stream(ctx, name)
	if err != nil {
		return err
	}
	info := s.CachedInfo()
	if name == events.StreamSchedules { // the leader of this stream decides when waiting events are due
		u.clock.Read(info.TimeStamp, asked, time.Now())
	}
	was, known := u.created[name]
	u.created[name] = info.Created
	u.loop.Do(func() {
		if known && !was.Equal(info.Created) {
			u.dropOldEvents(info)
		}
		for i, l := range u.lanes {
			if l.src.stream == name {
				l.src.seen.Store(epochs[i])
			}
		}
	})
	return nil
}

// retryNoteCreated tries noteCreated a few times.
func (u *maintenance) retryNoteCreated(ctx context.Context) (err error) {
	for range 5 {
		if err = u.noteCreated(ctx); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// anyMissing reports whether a stream is missing. run calls it regularly.
func (u *maintenance) anyMissing(life context.Context) bool {
	if !u.nc.IsConnected() {
		return false
	}
	err := u.noteCreated(life)
	if err != nil && life.Err() == nil {
		u.log.Debug().Err(err).Msg("creation times of streams could not be looked up; trying again")
	}
	return errors.Is(err, jetstream.ErrStreamNotFound)
}

// dropOldEvents forgets the events in flight of the stream that was there before. It runs on the settle goroutine.
func (u *maintenance) dropOldEvents(info *jetstream.StreamInfo) {
	name := info.Config.Name
	old := u.settler.inflight.filter(func(h *entry) bool {
		return h.from.stream == name && (h.event.Origin.Seq < info.Config.FirstSeq || h.stored.Before(info.Created))
	})
	u.log.Warn().Str("stream", name).Time("created", info.Created).Int("events", len(old)).
		Msg("the stream was deleted and created again; events of the old stream that are in flight here are dropped")
	u.settler.orphan(old)
}
