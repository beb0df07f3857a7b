package janitor

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

const (
	sweepSoon  = 2 * time.Second // after start and after a reconnect
	sweepEvery = 5 * time.Minute
	// sweepAge is the minimum age of swept messages in a lane in which nothing was acked since its server started.
	sweepAge = 10 * time.Second
)

// Sweep removes acked messages that nats-server did not remove, until life ends. When nats-server shuts down or is
// killed, it may count an ack and not remove the message (measured with 2.15.2: about one for each busy lane, or
// hundreds). On its next start it neither removes nor delivers the message. No event would be lost, but the stream
// would fill up and take no more events.
func (j *Janitor) Sweep(life context.Context) {
	timer := time.NewTimer(sweepSoon)
	defer timer.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-j.soon:
			timer.Reset(sweepSoon)
			continue
		case <-timer.C:
		}
		timer.Reset(sweepEvery)
		for _, l := range j.cfg.Lanes {
			young, err := j.sweep(life, l.Stream, l.Consumer)
			if young || err != nil {
				timer.Reset(sweepAge)
			}
			if err != nil {
				j.log.Debug().Err(err).Str("consumer", l.Consumer).Msg("acked messages that are still stored could not be found or removed")
				break
			}
		}
	}
}

// sweep acks again the messages that still exist below the lane's ack floor, where the server itself says that
// everything is acked. It removes no message that was stored after the last ack. A server that has restarted since does
// not know the time of the last ack. Then sweep removes no message that is younger than sweepAge; young reports that it
// left one for that reason. With several replicas it then removes nothing: replicas compare themselves.
func (j *Janitor) sweep(ctx context.Context, name, lane string) (young bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	consumer, err := j.js.Consumer(ctx, name, lane)
	if err != nil {
		return false, err
	}
	info := consumer.CachedInfo()
	floor, last := info.AckFloor, info.TimeStamp.Add(-sweepAge)
	switch {
	case floor.Last != nil:
		last = *floor.Last
	case j.cfg.Replicas > 1:
		return false, nil
	}
	for m, err := range stored.All(ctx, j.js.Conn(), name, info.Config.FilterSubject, 1) {
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
		if _, err := j.js.Conn().RequestMsgWithContext(ctx, &nats.Msg{Subject: subject}); err != nil {
			return young, err
		}
		j.swept.Inc()
	}
	return young, nil
}
