package jsapi

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// Requester sends messages that are answered, without a goroutine that waits for each answer. Make it with
// NewRequester.
type Requester struct {
	nc     *nats.Conn
	prefix string // answers come to prefix + token
	sub    *nats.Subscription

	mu      sync.Mutex
	next    uint64
	pending map[uint64]pending
	closed  bool
}

// pending is a request without an answer.
type pending struct {
	until time.Time
	done  func(answer *nats.Msg, err error)
}

// Errors of a request.
var (
	ErrNoAnswer = errors.New("no answer in time")
	ErrClosed   = errors.New("consumer is closed")
)

// NewRequester makes a Requester. It sends nothing before Open.
func NewRequester(nc *nats.Conn) *Requester { return &Requester{nc: nc} }

// Open subscribes to the answers. The goroutine of this subscription calls back with answers, and the caller of Expire
// with timeouts.
func (r *Requester) Open() error {
	if err := r.open(func(subject string) (*nats.Subscription, error) {
		return r.nc.Subscribe(subject,
			r.Answer)
	}); err != nil {
		return err
	}
	return r.sub.SetPendingLimits(-1, -1)
}

// OpenTo is Open for a caller who takes the answers from a channel, when there is time for them, and passes each to
// Answer. An answer that finds no room in the channel is lost.
func (r *Requester) OpenTo(answers chan *nats.Msg) error {
	return r.open(func(subject string) (*nats.Subscription, error) { return r.nc.ChanSubscribe(subject, answers) })
}

func (r *Requester) open(subscribe func(subject string) (*nats.Subscription, error)) error {
	r.prefix = r.nc.NewInbox() + "."
	r.pending = make(map[uint64]pending)
	sub, err := subscribe(r.prefix + "*")
	if err != nil {
		return fmt.Errorf("consumer: subscribe to answers: %w", err)
	}
	r.sub = sub
	return nil
}

// Ask publishes m with a reply subject of its own. It calls done exactly once: with the answer, with an error, or with
// ErrNoAnswer after wait. It calls done before it returns only when m cannot be published.
func (r *Requester) Ask(m *nats.Msg, wait time.Duration, now time.Time, done func(*nats.Msg, error)) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		done(nil, ErrClosed)
		return
	}
	r.next++
	token := r.next
	r.pending[token] = pending{now.Add(wait), done}
	r.mu.Unlock()
	m.Reply = r.prefix + strconv.FormatUint(token, 36)
	if err := r.nc.PublishMsg(m); err != nil {
		if p, ok := r.take(token); ok {
			p.done(nil, err)
		}
	}
}

func (r *Requester) take(token uint64) (pending, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.pending[token]
	delete(r.pending, token)
	return p, ok
}

// Answer calls back with an answer.
func (r *Requester) Answer(m *nats.Msg) {
	token, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, r.prefix), 36, 64)
	if err != nil {
		return
	}
	p, ok := r.take(token)
	if !ok {
		return
	}
	if NoResponders(m) {
		p.done(nil, nats.ErrNoResponders)
		return
	}
	p.done(m, nil)
}

// NoResponders reports whether m is the server's message that no client subscribes to the subject of the request whose
// reply subject is the subject of m.
func NoResponders(m *nats.Msg) bool { return len(m.Data) == 0 && m.Header.Get("Status") == "503" }

// Expire ends the requests whose time is over.
func (r *Requester) Expire(now time.Time) {
	r.mu.Lock()
	var late []pending
	for token, p := range r.pending {
		if now.After(p.until) {
			late = append(late, p)
			delete(r.pending, token)
		}
	}
	r.mu.Unlock()
	for _, p := range late {
		p.done(nil, ErrNoAnswer)
	}
}

// Close ends every request with ErrClosed.
func (r *Requester) Close() {
	if r.sub != nil {
		_ = r.sub.Unsubscribe() // fails when the connection is closed, which has the same effect
	}
	r.mu.Lock()
	r.closed = true
	left := r.pending
	r.pending = nil
	r.mu.Unlock()
	for _, p := range left {
		p.done(nil, ErrClosed)
	}
}
