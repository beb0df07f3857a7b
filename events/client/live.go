package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

const (
	// liveAhead is the most stored parts of a live body that the handler has not taken.
	liveAhead = 16
	// breakWait bounds the message that a live body is not complete.
	breakWait = 5 * time.Second
)

// feed sends a live body while its event runs.
type feed struct {
	c    *Client
	call *call
	id   string
	stop context.CancelCauseFunc
	// broken: the body is not complete, and the call ends with that error soon.
	broken atomic.Bool

	mu    sync.Mutex
	taken int           // parts that the handler has taken
	more  chan struct{} // capacity 1: taken has changed
}

var errOver = errors.New("the event is over")

// live prepares the body of r to be sent while its event runs, if BodyLive is set.
func (c *Client) live(r *Request, call *call) error {
	if !r.BodyLive {
		return nil
	}
	if r.Kind != events.Fetch || len(r.Body) > 0 || r.BodyFrom == nil || !call.wantReply {
		return fmt.Errorf("%w: BodyLive is for a fetch event with a BodyFrom, and for Call or Open", ErrMalformed)
	}
	if r.Method == "" {
		r.Method = "POST"
	}
	r.bodyID = rand.Text()
	call.feed = &feed{c: c, call: call, id: r.bodyID, stop: func(error) {}, more: make(chan struct{}, 1)}
	return nil
}

// start sends the body until ctx is done or over is called.
func (f *feed) start(ctx context.Context, r *Request) {
	if f == nil {
		return
	}
	ctx, f.stop = context.WithCancelCause(ctx)
	go f.run(ctx, r.Owner, r.BodyFrom)
}

// over ends the feed: no more of the body is needed.
func (f *feed) over() {
	if f != nil {
		f.stop(errOver)
	}
}

// take reads how many parts the handler has taken. A late message has a smaller number and changes nothing.
func (f *feed) take(m *nats.Msg) {
	if f == nil {
		return
	}
	n, err := strconv.Atoi(m.Header.Get(events.HeaderBodyRead))
	f.mu.Lock()
	if err == nil {
		f.taken = max(f.taken, n)
	}
	f.mu.Unlock()
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// room waits until part n may be stored.
func (f *feed) room(ctx context.Context, n int) error {
	for {
		f.mu.Lock()
		taken := f.taken
		f.mu.Unlock()
		if n < taken+liveAhead {
			return ctx.Err()
		}
		select {
		case <-f.more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *feed) run(ctx context.Context, owner string, from io.Reader) {
	var onWay sync.WaitGroup
	places := make(chan struct{}, partsOnWay)
	store := func(i int, data []byte) {
		places <- struct{}{}
		onWay.Go(func() {
			defer func() { <-places }()
			if err := f.c.storePart(ctx, &nats.Msg{Subject: f.c.subjects.BodyPart(owner, f.id, i), Data: data}); err != nil {
				f.stop(err) // the other parts are useless now
			}
		})
	}
	err := f.send(ctx, from, store)
	if err != nil {
		f.stop(err)
	}
	onWay.Wait()
	if err = context.Cause(ctx); err == nil || errors.Is(err, errOver) {
		return
	}
	err = fmt.Errorf("send the body: %w", err)
	f.broken.Store(true)
	later, cancel := context.WithTimeout(context.WithoutCancel(ctx), breakWait)
	defer cancel()
	// The handler must not wait for parts that do not come. If this message is lost, the handler finds out by itself.
	end := f.c.subjects.BodyPart(owner, f.id, events.EndPart)
	_ = f.c.storePart(later, &nats.Msg{Subject: end, Data: events.EncodeBreak(err.Error())})
	f.call.end(answer{err: err})
	if f.call.body != nil {
		f.call.body.fail(err)
	}
}

// send reads the body, stores each part as soon as it is read, and then stores the number of parts.
func (f *feed) send(ctx context.Context, from io.Reader, store func(i int, data []byte)) error {
	size := min(partSize, f.c.nc.MaxPayload()/2)
	for n := 0; n < maxBodyParts; {
		if err := f.room(ctx, n); err != nil {
			return context.Cause(ctx)
		}
		part := make([]byte, size)
		got, err := from.Read(part)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if got > 0 {
			store(n, part[:got])
			n++
		}
		if errors.Is(err, io.EOF) {
			store(events.EndPart, events.EncodeEnd(n))
			return nil
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: it has more than %d parts", ErrMalformed, maxBodyParts)
}
