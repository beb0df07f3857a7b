package bodies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

const (
	// partLook is how often the reader looks for a part without a notice, because the notice may be lost.
	partLook = time.Second
	// unknownParts is the number of parts of a body whose end has not arrived.
	unknownParts = -1
)

// liveBody reads a body whose parts arrive while its event runs. It waits for one part at a time. Once it has had to
// wait, it gets notices of all parts that arrive.
type liveBody struct {
	parts *Parts
	event *lifecycle.Delivery

	mu   sync.Mutex         // held while a part is read: JavaScript reads one at a time
	n    int                // number of its parts, or unknownParts
	came chan struct{}      // capacity 1: a notice of parts came
	sub  *nats.Subscription // set while a run reads and has had to wait
}

// read is Parts.Read. It publishes to the event's Reply-To that a part was taken, so that the sender stays only a few
// parts ahead.
func (b *liveBody) read(ctx context.Context, i int) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, err := b.await(ctx, i)
	if err == nil && b.event.ReplyTo != "" {
		m := &nats.Msg{Subject: b.event.ReplyTo, Header: nats.Header(events.BodyRead(b.event.ID, i+1))}
		_ = b.parts.api.NC.PublishMsg(m) // not connected: the message for the next part says so too
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("part %d of body %s: %w", i, b.event.Parts.ID, err)
	}
	return data, err
}

func (b *liveBody) await(ctx context.Context, i int) ([]byte, error) {
	patience := time.NewTimer(b.parts.cfg.Patience)
	defer patience.Stop()
	look := time.NewTicker(partLook)
	defer look.Stop()
	for {
		data, err := b.look(ctx, i)
		if !errors.Is(err, stored.ErrNone) {
			return data, err
		}
		if b.sub == nil { // look again for parts that came before the subscription
			if err := b.listen(ctx); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-b.came:
		case <-look.C:
		case <-patience.C:
			return nil, fmt.Errorf("it has not come within %s", b.parts.cfg.Patience)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// look looks once for part i. The error is ErrNone when it has not arrived, and io.EOF when the body has no part i.
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
	return nil, stored.ErrNone // the part arrives after the end of the body
}

func (b *liveBody) get(ctx context.Context, i int) ([]byte, error) {
	return stored.LastData(ctx, b.parts.api.NC, events.StreamBodies, b.parts.cfg.Prefix.BodyPart(b.event.Owner,
		b.event.Parts.ID, i))
}

// listen subscribes to notices of parts that arrive from now on, until the run is over.
func (b *liveBody) listen(ctx context.Context) error {
	came := make(chan struct{}, 1)
	sub, err := b.parts.api.NC.Subscribe(b.parts.cfg.Prefix.PartCame(b.event.Owner, b.event.Parts.ID),
		func(*nats.Msg) { jsapi.Signal(came) })
	if err != nil {
		return err
	}
	b.sub, b.came = sub, came
	context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		_ = sub.Unsubscribe()
		if b.sub == sub {
			b.sub = nil // another run subscribes again
		}
	})
	limited, cancel := context.WithTimeout(ctx, b.parts.cfg.Patience)
	defer cancel()
	return b.parts.api.NC.FlushWithContext(limited) // so that notices come of parts that are stored after the next look
}
