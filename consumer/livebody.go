package consumer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/stored"
)

const (
	// partLook is how often it is looked for a part that nobody has told of: word of it may be lost.
	partLook = time.Second
	// unknownParts is the number of parts of a body whose end has not come.
	unknownParts = -1
)

// liveBody reads a body whose parts come while its event runs. It waits for one part at a time, and then hears of all that come.
type liveBody struct {
	c     *Consumer
	event *events.Event

	mu   sync.Mutex         // held while a part is read: JavaScript reads one at a time
	n    int                // of its parts, or unknownParts
	came chan struct{}      // capacity 1: there is word of parts
	sub  *nats.Subscription // while a run reads and has had to wait
}

// read is Parts.Read. That a part was taken is told to the event's Reply-To: its sender is to be no more than some parts ahead.
func (b *liveBody) read(ctx context.Context, i int) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, err := b.await(ctx, i)
	if err == nil && b.event.ReplyTo != "" {
		m := &nats.Msg{Subject: b.event.ReplyTo, Header: nats.Header(events.BodyRead(b.event.ID, i+1))}
		_ = b.c.nc.PublishMsg(m) // not connected: the next part tells
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("part %d of body %s: %w", i, b.event.Parts.ID, err)
	}
	return data, err
}

func (b *liveBody) await(ctx context.Context, i int) ([]byte, error) {
	patience := time.NewTimer(b.c.cfg.PartPatience)
	defer patience.Stop()
	look := time.NewTicker(partLook)
	defer look.Stop()
	for {
		data, err := b.look(ctx, i)
		if !errors.Is(err, stored.ErrNone) {
			return data, err
		}
		if b.sub == nil { // what came before anybody listened is looked for once more
			if err := b.listen(ctx); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-b.came:
		case <-look.C:
		case <-patience.C:
			return nil, fmt.Errorf("it has not come within %s", b.c.cfg.PartPatience)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// look is one look for part i: ErrNone when it has not come, io.EOF when there are no more than i.
func (b *liveBody) look(ctx context.Context, i int) ([]byte, error) {
	if b.n == unknownParts || i < b.n {
		data, err := b.get(ctx, i)
		if !errors.Is(err, stored.ErrNone) {
			return data, err
		}
	}
	if b.n == unknownParts {
		end, err := b.get(ctx, events.EndPart)
		if err != nil {
			return nil, err
		}
		if b.n, err = events.DecodeEnd(end); err != nil {
			b.n = unknownParts
			return nil, err
		}
	}
	if i >= b.n {
		return nil, io.EOF
	}
	return nil, stored.ErrNone // it is behind the end on its way
}

func (b *liveBody) get(ctx context.Context, i int) ([]byte, error) {
	return stored.LastData(ctx, b.c.nc, StreamBodies, b.c.cfg.Prefix.BodyPart(b.event.Owner, b.event.Parts.ID, i))
}

// listen hears of parts that come from now on, until the run is over.
func (b *liveBody) listen(ctx context.Context) error {
	came := make(chan struct{}, 1)
	sub, err := b.c.nc.Subscribe(b.c.cfg.Prefix.PartCame(b.event.Owner, b.event.Parts.ID), func(*nats.Msg) { signal(came) })
	if err != nil {
		return err
	}
	b.sub, b.came = sub, came
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		_ = sub.Unsubscribe()
		if b.sub == sub {
			b.sub = nil // another run listens anew
		}
	})
	limited, cancel := context.WithTimeout(ctx, b.c.cfg.PartPatience)
	defer cancel()
	return b.c.nc.FlushWithContext(limited) // so that word of what is stored after the next look comes
}
