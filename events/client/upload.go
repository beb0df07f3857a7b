package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

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

// StoredBody names a body that the fleet has stored in parts (docs/reference/wire.md, "Request bodies in parts").
type StoredBody struct {
	ID    string
	Parts int // 0: from had no bytes, and nothing is stored
}

// Store stores what from returns in parts, as a body of this owner. An event that names it can read it within 24 hours;
// an event that ends removes it. A Request with a BodyFrom does this by itself.
func (c *Client) Store(ctx context.Context, owner string, from io.Reader) (StoredBody, error) {
	if err := events.CheckName("owner", owner); err != nil {
		return StoredBody{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	b := StoredBody{ID: rand.Text()}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var onWay sync.WaitGroup
	places := make(chan struct{}, partsOnWay)
	err := c.storeParts(ctx, owner, from, &b, func(m *nats.Msg) {
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
		return b, fmt.Errorf("store the body: %w", err)
	}
	return b, nil
}

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
	b, err := c.Store(ctx, r.Owner, r.BodyFrom)
	r.bodyID, r.bodyParts = b.ID, b.Parts
	return err
}

// storeParts reads the body, counts its parts in b and calls store for each. A body without bytes has no parts; the
// event has an empty body then.
func (c *Client) storeParts(ctx context.Context, owner string, from io.Reader, b *StoredBody,
	store func(*nats.Msg)) error {
	size := min(partSize, c.nc.MaxPayload()/2)
	for n := 0; n < maxBodyParts; n++ {
		part := make([]byte, size)
		got, err := io.ReadFull(from, part)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return err
		}
		if got == 0 || ctx.Err() != nil {
			return nil
		}
		store(&nats.Msg{Subject: c.subjects.BodyPart(owner, b.ID, n), Data: part[:got]})
		b.Parts = n + 1
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
	call := &call{done: make(chan answer, 1)}
	token, err := c.begin(call)
	if err != nil {
		return err
	}
	defer c.forget(token)
	again := *m // the one before may be on its way
	again.Reply = c.inbox + token
	if err := c.nc.PublishMsg(&again); err != nil {
		return err
	}
	select {
	case a := <-call.done:
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// passing reports whether another try to store a part may succeed soon.
func passing(err error) bool {
	var refused *jetstream.APIError
	if errors.As(err, &refused) {
		return refused.Code == http.StatusTooManyRequests || refused.Code == http.StatusServiceUnavailable &&
			refused.ErrorCode == 0
	}
	return errors.Is(err, ErrNoStream) || errors.Is(err, context.DeadlineExceeded)
}
