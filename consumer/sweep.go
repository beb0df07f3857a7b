package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/internal/stored"
)

const (
	sweepSoon  = 2 * time.Second // after start and after a reconnect
	sweepEvery = 5 * time.Minute
	// sweepAge is how old what is swept is at least in a lane in which nothing was acked since its server started.
	sweepAge = 10 * time.Second
)

// sweepLoop removes messages that nats-server forgot to. When it shuts down or is killed it may count an ack and
// not remove the message (measured with 2.15.2: about one for each busy lane, or hundreds); on its next start
// it neither removes nor delivers it. Nothing would be lost, but the stream would fill up, and take no more events.
func (c *Consumer) sweepLoop(life context.Context) {
	timer := time.NewTimer(sweepSoon)
	defer timer.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-c.sweepNow:
			timer.Reset(sweepSoon)
			continue
		case <-timer.C:
		}
		timer.Reset(sweepEvery)
		for _, l := range c.puller.lanes { // which never change
			young, err := c.sweep(life, l.src.stream, l.src.consumer)
			if young || err != nil {
				timer.Reset(sweepAge)
			}
			if err != nil {
				c.log.Debug().Err(err).Str("consumer", l.src.consumer).Msg("acked messages could not be looked for")
				break
			}
		}
	}
}

// sweep acks again what is below the lane's ack floor and there nevertheless: below it the server
// itself says that all is acked. It removes nothing that was stored after the last ack; young says that it left something for that.
// A server that has started since does not know when that was; then it removes nothing that is younger than sweepAge, and nothing at all
// where there are several copies: those compare themselves.
func (c *Consumer) sweep(ctx context.Context, name, lane string) (young bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	consumer, err := c.js.Consumer(ctx, name, lane)
	if err != nil {
		return false, err
	}
	info := consumer.CachedInfo()
	floor, last := info.AckFloor, info.TimeStamp.Add(-sweepAge)
	switch {
	case floor.Last != nil:
		last = *floor.Last
	case c.cfg.Replicas > 1:
		return false, nil
	}
	for m, err := range stored.All(ctx, c.nc, name, info.Config.FilterSubject, 1) {
		if err != nil {
			return young, err
		}
		if m.Sequence > floor.Stream {
			return young, nil
		}
		if m.Time.After(last) {
			young = floor.Last == nil
			continue
		}
		subject := fmt.Sprintf("$JS.ACK.%s.%s.1.%d.%d.%d.0", name, lane, m.Sequence, floor.Consumer, m.Time.UnixNano())
		if _, err := c.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject}); err != nil {
			return young, err
		}
		c.metrics.swept.Inc()
	}
	return young, nil
}
