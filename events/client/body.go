package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

// bodyWindow is the most bytes of a body that may come before the reader has taken them.
const bodyWindow = 1 << 20

// ErrSilent is the error when nothing of a body has come for a minute.
var ErrSilent = errors.New("no more of the body comes")

// silence is the longest time without data.
const silence = time.Minute

// Open stores a fetch event and waits for the head of its reply, until ctx is done. The body may have any length, and
// comes as fast as the reader takes it. It ends with io.EOF, or with the *events.Failure that ended it early. The
// caller must close it. When it is closed, or ctx is done, before the body is complete, the handler sees it:
// request.signal aborts, and the body is cancelled. The error of a failed event is its Failure, as with Call; the body
// is nil then.
func (c *Client) Open(ctx context.Context, r Request) (*events.Reply, io.ReadCloser, error) {
	if r.Kind != events.Fetch {
		return nil, nil, fmt.Errorf("event for %s/%s: a %s has no body in chunks, only fetch does", r.Owner, r.Worker, r.Kind)
	}
	b := &body{c: c, owner: r.Owner, worker: r.Worker, more: make(chan struct{}, 1)}
	r.credit = bodyWindow
	call := &call{wantReply: true, done: make(chan answer, 1), body: b, onStored: r.OnStored}
	token, err := c.begin(call)
	if err != nil {
		return nil, nil, err
	}
	b.token, b.subject = token, c.inbox+token
	a, err := c.await(ctx, r, call, b.subject)
	b.feed = call.feed
	if err != nil {
		b.feed.over()
		b.cancel()
		c.forget(token)
		return nil, nil, err
	}
	reply := a.reply
	if reply.CreditSubject == "" { // the whole body came with the head
		b.feed.over()
		c.forget(token)
		b.data, b.err = reply.Body, io.EOF
		if reply.Failure != nil {
			return reply, nil, reply.Failure
		}
		return reply, b, nil
	}
	b.stop = context.AfterFunc(ctx, func() {
		b.fail(ctx.Err())
		_ = b.cancel()
	})
	return reply, b, nil
}

// body is an io.ReadCloser of a reply's body.
type body struct {
	c             *Client
	owner, worker string
	token         string
	subject       string // where the reply comes, which identifies the call for the fleet
	credit        string // where more is granted
	stop          func() bool
	feed          *feed // of the request's body, which may continue while the reply's body comes

	mu      sync.Mutex
	from    string // the credit subject of the reply that is read; chunks of another run have another one
	seq     int
	came    int64
	taken   int64
	granted int64
	data    []byte // has come and is not read
	err     error  // what follows data
	closed  bool
	more    chan struct{}
}

// begin takes the head of a reply. It returns false for the head of a second reply.
func (b *body) begin(credit string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.from != "" {
		_ = b.c.nc.Publish(credit, []byte(events.GoneCredit)) // so that the handler does not make a body that is not read
		return false
	}
	b.from, b.credit, b.granted = credit, credit, bodyWindow
	return true
}

// take takes a chunk.
func (b *body) take(m *nats.Msg) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil || m.Reply != b.from {
		return
	}
	b.seq++
	chunk, err := events.DecodeChunk(events.Header(m.Header), m.Data, b.seq, b.came)
	b.came += int64(len(m.Data))
	if len(b.data) == 0 {
		b.data = chunk.Data
	} else {
		b.data = append(b.data, chunk.Data...)
	}
	switch {
	case err != nil:
		b.err = err
	case chunk.Failure != nil:
		b.err = chunk.Failure
	case chunk.End:
		b.err = io.EOF
	}
	b.signal()
}

func (b *body) signal() {
	select {
	case b.more <- struct{}{}:
	default:
	}
}

func (b *body) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.data, b.err = nil, err
	}
	b.signal()
}

// Read returns data that has come, and waits for some if there is none.
func (b *body) Read(p []byte) (int, error) {
	timer := time.NewTimer(silence)
	defer timer.Stop()
	for {
		b.mu.Lock()
		if len(b.data) > 0 && len(p) > 0 {
			n := copy(p, b.data)
			b.data = b.data[n:]
			b.taken += int64(n)
			b.grant()
			b.mu.Unlock()
			return n, nil
		}
		err := b.err
		b.mu.Unlock()
		if err != nil || len(p) == 0 {
			return 0, err
		}
		select {
		case <-b.more:
		case <-timer.C:
			return 0, ErrSilent
		}
	}
}

// grant lets more come when half of what was granted is read. The caller holds the lock.
func (b *body) grant() {
	if b.err != nil || b.taken+bodyWindow/2 < b.granted {
		return
	}
	b.granted = b.taken + bodyWindow
	if err := b.c.nc.Publish(b.credit, strconv.AppendInt(nil, b.granted, 10)); err != nil {
		b.err = err
	}
}

// Close ends the body. If it is not complete, the handler is notified.
func (b *body) Close() error {
	b.mu.Lock()
	closed, complete := b.closed, b.err != nil && (errors.Is(b.err, io.EOF) || errors.As(b.err, new(*events.Failure)))
	b.closed = true
	b.mu.Unlock()
	if closed {
		return nil
	}
	b.feed.over()
	if b.stop != nil {
		b.stop()
	}
	b.fail(ErrClosed)
	b.c.forget(b.token)
	if !complete {
		return b.cancel()
	}
	return nil
}

// cancel tells the fleet that the caller no longer waits.
func (b *body) cancel() error {
	b.mu.Lock()
	credit := b.credit
	b.mu.Unlock()
	if credit != "" {
		if err := b.c.nc.Publish(credit, []byte(events.GoneCredit)); err != nil {
			return err
		}
	}
	return b.c.nc.Publish(b.c.subjects.Cancel(b.owner, b.worker), []byte(b.subject))
}
