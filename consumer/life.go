package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// lives says since when the streams are there whose events are acked, by the clock of the server. An ack names a sequence and nothing else, so
// that of an event of a deleted stream may be taken for one of the stream that was made in its place. Where this fleet makes a stream again, no
// sequence comes again (ADR 0019); where somebody else does, each process forgets what it holds of the one before as soon as it sees that.
type lives map[string]time.Time

// lifeWait is how long an ack waits between two looks whether the stream it is for is still the same.
const lifeWait = 50 * time.Millisecond

// livesPatience is how long the answer about one stream may take: a request may be lost while servers elect a leader.
const livesPatience = 2 * time.Second

// noteLives looks since when the streams are there. Its error is jetstream.ErrStreamNotFound when one is missing.
func (c *Consumer) noteLives(ctx context.Context) (err error) {
	for _, name := range [...]string{StreamEvents, StreamParked, StreamSchedules} {
		if e := c.noteLife(ctx, name); e != nil {
			err = errors.Join(err, fmt.Errorf("consumer: stream %s: %w", name, e))
		}
	}
	return err
}

func (c *Consumer) noteLife(ctx context.Context, name string) error {
	var epochs [events.Lanes + events.DueLanes]uint64
	for i, l := range c.puller.lanes { // which never change
		epochs[i] = l.src.epoch.Load()
	}
	ctx, cancel := context.WithTimeout(ctx, livesPatience)
	defer cancel()
	asked := time.Now()
	s, err := c.js.Stream(ctx, name)
	if err != nil {
		return err
	}
	info := s.CachedInfo()
	if name == StreamSchedules { // whose leader says when what waits is due
		c.clock.read(info.TimeStamp, asked, time.Now())
	}
	was, known := c.lives[name]
	c.lives[name] = info.Created
	c.do(func() {
		if known && !was.Equal(info.Created) {
			c.madeAgain(info)
		}
		for i, l := range c.puller.lanes {
			if l.src.stream == name {
				l.src.seen.Store(epochs[i])
			}
		}
	})
	return nil
}

// livesKnown insists on noteLives, a few times.
func (c *Consumer) livesKnown(ctx context.Context) (err error) {
	for range 5 {
		if err = c.noteLives(ctx); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// looksGone is for assetsLoop, now and then: it reports whether a stream is missing.
func (c *Consumer) looksGone(life context.Context) bool {
	if !c.nc.IsConnected() {
		return false
	}
	err := c.noteLives(life)
	if err != nil && life.Err() == nil {
		c.log.Debug().Err(err).Msg("it could not be looked up since when streams are there; trying again")
	}
	return errors.Is(err, jetstream.ErrStreamNotFound)
}

// madeAgain forgets the events that are held of the stream that was there before. It runs on the settle goroutine.
func (c *Consumer) madeAgain(info *jetstream.StreamInfo) {
	name := info.Config.Name
	old := c.table.those(func(h *held) bool {
		return h.from.stream == name && (h.event.Origin.Seq < info.Config.FirstSeq || h.stored.Before(info.Created))
	})
	c.log.Warn().Str("stream", name).Time("created", info.Created).Int("events", len(old)).
		Msg("the stream was deleted and made again; events of the one before that are held here are forgotten")
	c.lapse(old)
}

// lapse forgets events whose stream is not there any more. Whatever becomes of them here is told nobody: not the stream, which may have others
// under their numbers, not the bucket of attempts, and not their requesters. It runs on the settle goroutine.
func (c *Consumer) lapse(batch []*held) {
	if guard.StreamLife.Off() {
		return
	}
	for _, h := range batch {
		h.lapsed = true
		c.retries.drop(h)
		c.metrics.lost.Inc()
	}
	c.table.remove(batch...)
}
