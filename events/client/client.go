package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

// Errors of Call and Publish. Other errors are those of the context and the connection, *events.Failure (the event
// failed; only from Call) and *jetstream.APIError (the stream refused the event, for example because it is full).
var (
	// ErrMalformed: the event breaks the wire contract and was not sent. The error says how.
	ErrMalformed = errors.New("malformed event")
	// ErrNoStream: no stream takes events on the subject. No Pinwheel has run here yet, the prefix of its subjects is
	// another one, or the stream has no leader at the moment.
	ErrNoStream = errors.New("no stream takes events here")
	// ErrDuplicate: an event with this id was stored before. The reply goes to the publisher of that event.
	ErrDuplicate = errors.New("an event of this id was published before")
	// ErrNotAcknowledged comes with the error of a context: JetStream has not acknowledged the event. It may be stored
	// nevertheless.
	ErrNotAcknowledged = errors.New("not known to be stored")
	// ErrClosed: the Client was closed.
	ErrClosed = errors.New("client is closed")
)

// Client publishes events over a NATS connection. Many goroutines may use it at once.
type Client struct {
	nc       *nats.Conn
	subjects events.Subjects
	inbox    string // with the dot at its end
	sub      *nats.Subscription

	mu     sync.Mutex
	closed bool
	last   uint64
	calls  map[string]*call // by the last token of the reply subject
}

// Option changes a Client.
type Option func(*Client)

// Prefix is for a fleet whose subjects do not begin with events.DefaultPrefix.
func Prefix(prefix string) Option {
	return func(c *Client) { c.subjects = events.Subjects(prefix) }
}

// Inbox has answers come to subjects that begin with prefix, which ends in a dot. It is for a connection whose own
// inboxes the fleet does not answer for an owner (PINWHEEL_REPLY_PREFIXES).
func Inbox(prefix string) Option {
	return func(c *Client) { c.inbox = prefix + rand.Text() + "." }
}

// New makes a Client. It subscribes to an inbox of its own; Close ends this subscription. The connection remains open.
func New(nc *nats.Conn, opts ...Option) (*Client, error) {
	c := &Client{nc: nc, subjects: events.DefaultPrefix, inbox: nc.NewInbox() + ".", calls: make(map[string]*call)}
	for _, opt := range opts {
		opt(c)
	}
	var err error
	if c.sub, err = nc.Subscribe(c.inbox+"*", c.answered); err != nil {
		return nil, fmt.Errorf("pinwheel client: %w", err)
	}
	// The calls in flight bound what waits here. A limit would lose replies.
	if err := c.sub.SetPendingLimits(-1, -1); err != nil {
		return nil, fmt.Errorf("pinwheel client: %w", err)
	}
	return c, nil
}

// Close ends the calls in flight with ErrClosed. Their events still run.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	calls := c.calls
	c.calls = nil
	c.mu.Unlock()
	for _, call := range calls {
		call.end(answer{err: ErrClosed})
	}
	return c.sub.Unsubscribe()
}

// Ack says where an event is stored.
type Ack struct {
	Stream    string
	Seq       uint64
	Duplicate bool // an event with this id was stored before, and this one is not stored
}

// Publish stores an event and does not wait for it to run.
func (c *Client) Publish(ctx context.Context, r Request) (*Ack, error) {
	a, err := c.do(ctx, r, false)
	if err != nil {
		return nil, err
	}
	return a.ack, nil
}

// Call stores an event and waits for its reply until ctx is done. The event runs in any case. When the event failed,
// Reply is not nil and the error is its Failure:
//
//	var failure *events.Failure
//	if errors.As(err, &failure) && failure.Reason == events.ReasonTimeout { … }
//
// A handler that answers with an HTTP status of 500, or {"success": false}, has not failed in this sense. Replies are
// not stored. If the connection is down when the reply is sent, Call waits until ctx is done, so ctx should have a
// deadline.
func (c *Client) Call(ctx context.Context, r Request) (*events.Reply, error) {
	a, err := c.do(ctx, r, true)
	if err != nil {
		return nil, err
	}
	if a.reply.Failure != nil {
		return a.reply, a.reply.Failure
	}
	return a.reply, nil
}

// do publishes r and waits for its answer.
func (c *Client) do(ctx context.Context, r Request, wantReply bool) (answer, error) {
	call := &call{wantReply: wantReply, done: make(chan answer, 1), onStored: r.OnStored}
	token, err := c.begin(call)
	if err != nil {
		return answer{}, err
	}
	defer c.forget(token)
	defer call.over()
	return c.await(ctx, r, call, c.inbox+token)
}

// await publishes r, with subject for its answers, and waits for the answer of the call.
func (c *Client) await(ctx context.Context, r Request, call *call, subject string) (answer, error) {
	replyTo := ""
	if call.wantReply {
		replyTo = subject
		if deadline, ok := ctx.Deadline(); ok && r.Kind == events.Fetch && r.Deadline.IsZero() {
			r.Deadline = deadline
		}
	}
	err := c.live(&r, call)
	if err == nil {
		err = c.upload(ctx, &r)
	}
	if err != nil {
		return answer{}, fmt.Errorf("event for %s/%s: %w", r.Owner, r.Worker, err)
	}
	m, err := r.message(c.subjects, c.inbox, replyTo)
	if err != nil {
		return answer{}, fmt.Errorf("event for %s/%s: %w", r.Owner, r.Worker, err)
	}
	m.Reply = subject
	if err := c.nc.PublishMsg(m); err != nil {
		return answer{}, fmt.Errorf("event for %s/%s: %w", r.Owner, r.Worker, err)
	}
	call.feed.start(ctx, &r)
	select {
	case a := <-call.done:
		if a.err != nil {
			return answer{}, fmt.Errorf("event for %s/%s: %w", r.Owner, r.Worker, a.err)
		}
		return a, nil
	case <-ctx.Done():
		return answer{}, fmt.Errorf("event for %s/%s, %w: %w", r.Owner, r.Worker, call.progress(), ctx.Err())
	}
}

func (c *Client) begin(call *call) (token string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return "", ErrClosed
	}
	c.last++
	token = strconv.FormatUint(c.last, 36)
	c.calls[token] = call
	return token, nil
}

func (c *Client) forget(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, token)
}

// answered handles messages to the inbox. A message that belongs to no call is late, or a second reply.
func (c *Client) answered(m *nats.Msg) {
	token := strings.TrimPrefix(m.Subject, c.inbox)
	c.mu.Lock()
	call := c.calls[token]
	c.mu.Unlock()
	if call != nil {
		call.take(m)
	}
}
