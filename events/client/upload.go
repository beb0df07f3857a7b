package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/pinwheel-run/pinwheel/events"
)

// Bounds of a body that is stored in parts.
const (
	partSize     = 512 << 10 // bytes, unless max_payload is less than twice that
	partsOnWay   = 8         // that are not acknowledged yet
	maxBodyParts = 1 << 20
)

// upload stores what r.BodyFrom gives, in parts, and has the event name them.
func (c *Client) upload(ctx context.Context, r *Request) error {
	if r.BodyFrom == nil {
		return nil
	}
	if r.Kind != events.Fetch || len(r.Body) > 0 {
		return fmt.Errorf("%w: BodyFrom is for a fetch event without a Body", ErrMalformed)
	}
	failed := make(chan error, 1) // the first part that was not stored
	js, err := jetstream.New(c.nc, jetstream.WithPublishAsyncMaxPending(partsOnWay),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, _ *nats.Msg, err error) {
			select {
			case failed <- err:
			default:
			}
		}))
	if err != nil {
		return err
	}
	r.bodyID = nuid.Next()
	if err := c.storeParts(ctx, js, r, failed); err != nil {
		return fmt.Errorf("store the body: %w", err)
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-ctx.Done():
		return fmt.Errorf("store the body: %w", ctx.Err())
	}
	select {
	case err := <-failed:
		return fmt.Errorf("store the body: %w", err)
	default:
		return nil
	}
}

// storeParts publishes the parts, and counts them.
func (c *Client) storeParts(ctx context.Context, js jetstream.JetStream, r *Request, failed <-chan error) error {
	part := make([]byte, min(partSize, c.nc.MaxPayload()/2))
	for n := 0; n == 0 || n < maxBodyParts; n++ {
		size, err := io.ReadFull(r.BodyFrom, part)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return err
		}
		if size == 0 && n > 0 {
			return nil
		}
		m := &nats.Msg{Subject: c.subjects.BodyPart(r.Owner, r.bodyID, n), Data: append([]byte(nil), part[:size]...)}
		if _, err := js.PublishMsgAsync(m, jetstream.WithStallWait(time.Minute)); err != nil {
			return err
		}
		r.bodyParts = n + 1
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		if size < len(part) {
			return nil
		}
	}
	return fmt.Errorf("%w: it has more than %d parts of %d bytes", ErrMalformed, maxBodyParts, len(part))
}
