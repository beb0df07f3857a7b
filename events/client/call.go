package client

import (
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
)

// call is one event with a caller that waits for the answer.
type call struct {
	wantReply bool
	done      chan answer // takes one
	stored    atomic.Pointer[Ack]
	onStored  func() // nil = nothing to call
	body      *body  // of a reply in chunks; nil = not wanted
	feed      *feed  // of a live body; nil = no live body
}

// over ends what is still sent for the call.
func (c *call) over() { c.feed.over() }

// answer is how a call ended: with an error, an ack or a reply.
type answer struct {
	ack   *Ack
	reply *events.Reply
	err   error
}

// end ends the call, if it has not ended. When its live body broke off, nothing but that error ends it: the handler may
// reply before the feed is done.
func (c *call) end(a answer) {
	if a.err == nil && c.feed != nil && c.feed.broken.Load() {
		return
	}
	select {
	case c.done <- a:
	default:
	}
}

// progress says in an error how far the call came.
func (c *call) progress() error {
	if a := c.stored.Load(); a != nil {
		return fmt.Errorf("stored as %s:%d and not answered yet", a.Stream, a.Seq)
	}
	return ErrNotAcknowledged
}

// take handles a message for the call: the worker's reply, which always has an attempt, or an answer of the server.
func (c *call) take(m *nats.Msg) {
	if c.wantReply && len(m.Header[events.HeaderAttempt]) > 0 {
		reply, err := events.DecodeReply(events.Header(m.Header), m.Data)
		if c.body != nil && err == nil && reply.CreditSubject != "" && !c.body.begin(reply.CreditSubject) {
			return // the reply of another run: the caller reads that of the first
		}
		c.end(answer{reply: reply, err: err})
		return
	}
	if len(m.Header[events.HeaderBodyRead]) > 0 {
		c.feed.take(m)
		return
	}
	if c.body != nil && len(m.Header[events.HeaderBodySeq]) > 0 {
		c.body.take(m)
		return
	}
	ack, err := serverAnswer(m)
	switch {
	case err != nil:
		c.end(answer{err: err})
	case !c.wantReply:
		c.end(answer{ack: ack})
	case ack.Duplicate:
		c.end(answer{err: fmt.Errorf("%w, as %s:%d", ErrDuplicate, ack.Stream, ack.Seq)})
	default:
		if c.stored.Store(ack); c.onStored != nil {
			c.onStored()
		}
	}
}

// serverAnswer reads a PubAck. The error says why there is none.
func serverAnswer(m *nats.Msg) (*Ack, error) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return nil, ErrNoStream
	}
	var a struct {
		Error     *jetstream.APIError `json:"error"`
		Stream    string              `json:"stream"`
		Seq       uint64              `json:"seq"`
		Duplicate bool                `json:"duplicate"`
	}
	if err := json.Unmarshal(m.Data, &a); err != nil || a.Error == nil && a.Stream == "" {
		return nil, fmt.Errorf("the answer is neither from the stream nor from Pinwheel: %.80q", m.Data)
	}
	if a.Error != nil {
		return nil, fmt.Errorf("the stream refused it: %w", a.Error)
	}
	return &Ack{Stream: a.Stream, Seq: a.Seq, Duplicate: a.Duplicate}, nil
}
