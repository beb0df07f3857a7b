package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	sweepSoon  = 2 * time.Second // after start and after a reconnect
	sweepEvery = 5 * time.Minute
)

// sweepLoop removes messages that nats-server forgot to. When it shuts down it may count an ack and
// not remove the message (measured with 2.15.2: about one for each busy lane); on its next start
// it neither removes nor delivers it. Nothing would be lost, but the stream would fill up.
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
			if err := c.sweep(life, l.src.stream, l.src.consumer); err != nil {
				c.log.Debug().Err(err).Str("consumer", l.src.consumer).Msg("acked messages could not be looked for")
				break
			}
		}
	}
}

// sweep acks again what is below the lane's ack floor and there nevertheless: below it the server
// itself says that all is acked. It removes nothing that was stored after the last ack.
func (c *Consumer) sweep(ctx context.Context, name, lane string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	consumer, err := c.js.Consumer(ctx, name, lane)
	if err != nil {
		return err
	}
	floor := consumer.CachedInfo().AckFloor
	if floor.Last == nil {
		return nil
	}
	stream, err := c.js.Stream(ctx, name)
	if err != nil {
		return err
	}
	for m, err := range messages(ctx, stream, consumer.CachedInfo().Config.FilterSubject, 1) {
		if err != nil {
			return err
		}
		if m.Sequence > floor.Stream {
			return nil
		}
		if m.Time.After(*floor.Last) {
			continue
		}
		subject := fmt.Sprintf("$JS.ACK.%s.%s.1.%d.%d.%d.0", name, lane, m.Sequence, floor.Consumer, m.Time.UnixNano())
		if _, err := c.nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject}); err != nil {
			return err
		}
		c.metrics.swept.Inc()
	}
	return nil
}
