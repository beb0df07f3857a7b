package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

// activationTimeout is many times what a process takes to activate a version.
const activationTimeout = 5 * time.Second

// await returns once a process of the fleet has activated w, so that an event sent next finds it. It asks with fetch events for
// this version that are too late to be run: refused for that, and no longer for a missing worker, it is there.
// The error says why nobody can tell; w is stored all the same.
func (c *remote) await(ctx context.Context, w *events.Worker) error {
	ctx, cancel := context.WithTimeout(ctx, activationTimeout)
	defer cancel()
	m := nats.NewMsg(c.subjects.Call(events.Fetch, w.Owner, w.Name))
	m.Header.Set(events.HeaderWorkerVersion, w.Version)
	m.Header.Set(events.HeaderDeadline, time.Unix(0, 0).UTC().Format(time.RFC3339))
	ask := func() error {
		answer, err := c.nc.RequestMsgWithContext(ctx, m)
		if errors.Is(err, nats.ErrNoResponders) {
			return backoff.Permanent(errors.New("no process of the fleet is running; the next one that starts will take it up"))
		}
		if err != nil {
			return err
		}
		reply, err := events.DecodeReply(events.Header(answer.Header), answer.Data)
		if err != nil {
			return backoff.Permanent(err)
		}
		if reply.Failure != nil && reply.Failure.Reason == events.ReasonNoWorker {
			return reply.Failure
		}
		return nil
	}
	tries := backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Millisecond), backoff.WithMaxInterval(100*time.Millisecond))
	err := backoff.Retry(ask, backoff.WithContext(tries, ctx))
	if ctx.Err() != nil {
		return fmt.Errorf("the fleet has not taken it up within %s", activationTimeout)
	}
	return err
}
