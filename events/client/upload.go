package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/pinwheel-run/pinwheel/events"
)

// Bounds of a body that is stored in parts.
const (
	partSize     = 512 << 10 // bytes, unless max_payload is less than twice that
	partsOnWay   = 8         // parts that are not acknowledged yet
	maxBodyParts = 1 << 20
	// partWait bounds the wait for the answer to a part, partTries the number of times that it is sent: a process that
	// takes it may end before it answers.
	partWait  = 10 * time.Second
	partTries = 6
	// partPause is the pause before the second try. It doubles for each further try.
	partPause = 100 * time.Millisecond
)

// upload stores what r.BodyFrom returns, in parts, and sets their name and number in r.
func (c *Client) upload(ctx context.Context, r *Request) error {
	if r.BodyFrom == nil || r.BodyLive {
		return nil
	}
	if r.Kind != events.Fetch || len(r.Body) > 0 {
		return fmt.Errorf("%w: BodyFrom is for a fetch event without a Body", ErrMalformed)
	}
	if r.Method == "" {
		r.Method = http.MethodPost // also when there is nothing to read
	}
	r.bodyID = nuid.Next()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var onWay sync.WaitGroup
	places := make(chan struct{}, partsOnWay)
	err := c.storeParts(ctx, r, func(m *nats.Msg) {
		places <- struct{}{}
		onWay.Go(func() {
			defer func() { <-places }()
			if err := c.storePart(ctx, m); err != nil {
				cancel(err) // the other parts are useless now
			}
		})
	})
	if err != nil {
		cancel(err)
	}
	onWay.Wait()
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("store the body: %w", err)
	}
	return nil
}

// storeParts reads the body, counts its parts and calls store for each. A body without bytes has no parts; the event
// has an empty body then.
func (c *Client) storeParts(ctx context.Context, r *Request, store func(*nats.Msg)) error {
	size := min(partSize, c.nc.MaxPayload()/2)
	for n := 0; n < maxBodyParts; n++ {
		part := make([]byte, size)
		got, err := io.ReadFull(r.BodyFrom, part)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return err
		}
		if got == 0 || ctx.Err() != nil {
			return nil
		}
		store(&nats.Msg{Subject: c.subjects.BodyPart(r.Owner, r.bodyID, n), Data: part[:got]})
		r.bodyParts = n + 1
		if got < len(part) {
			return nil
		}
	}
	return fmt.Errorf("%w: it has more than %d parts of %d bytes", ErrMalformed, maxBodyParts, size)
}

// storePart sends a part until it is stored. Storing a part twice does not change anything.
func (c *Client) storePart(ctx context.Context, m *nats.Msg) error {
	for try, pause := 1, partPause; ; try, pause = try+1, 2*pause {
		err := c.storeOnce(ctx, m)
		if err == nil || try == partTries || ctx.Err() != nil || !passing(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (c *Client) storeOnce(ctx context.Context, m *nats.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, partWait)
	defer cancel()
	answer, err := c.nc.RequestMsgWithContext(ctx, m)
	if errors.Is(err, nats.ErrNoResponders) {
		return ErrNoStream
	}
	if err != nil {
		return err
	}
	_, err = serverAnswer(answer)
	return err
}

// passing reports whether another try to store a part may succeed soon.
func passing(err error) bool {
	var refused *jetstream.APIError
	if errors.As(err, &refused) {
		return refused.Code == http.StatusTooManyRequests || refused.Code == http.StatusServiceUnavailable && refused.ErrorCode == 0
	}
	return errors.Is(err, ErrNoStream) || errors.Is(err, context.DeadlineExceeded)
}
