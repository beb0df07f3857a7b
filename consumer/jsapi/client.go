package jsapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/lib/repeats"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// Client is a connection to JetStream for the packages under consumer. All fields are set before it is used, and never
// change.
type Client struct {
	*Requester
	*Loop
	NC *nats.Conn
	JS jetstream.JetStream
	// Wait is how long the server may take to answer before the request is repeated.
	Wait time.Duration
	// Missing is called when an answer, or a missing answer, suggests that streams or consumers are missing. It does not
	// block.
	Missing func()
	// Repeats logs failures of which there may be very many. nil: they are not logged.
	Repeats *repeats.Log
}

// Request sends m, and calls done with its answer within Wait, on the goroutine that reads answers.
func (c *Client) Request(m *nats.Msg, done func(answer *nats.Msg, err error)) {
	c.Ask(m, c.Wait, time.Now(), done)
}

// Store publishes m to a stream, and calls done on the loop.
func (c *Client) Store(m *nats.Msg, done func(ack Ack, err error)) {
	c.Request(m, func(answer *nats.Msg, err error) {
		ack, err := ReadAck(answer, err)
		c.Do(func() { done(ack, err) })
	})
}

// LookUp reads the last message of a subject and calls done on the loop, with nil when there is none. It asks the
// stream's leader, because a follower may not have the message yet.
func (c *Client) LookUp(stream, subject string, done func(m *stored.Message, err error)) {
	c.Get(stream, stored.Request{Last: subject}, done)
}

// Get is LookUp for any request.
func (c *Client) Get(stream string, r stored.Request, done func(m *stored.Message, err error)) {
	request, _ := json.Marshal(r) // strings and a number cannot fail
	c.Request(&nats.Msg{Subject: stored.Subject(stream), Data: request}, func(answer *nats.Msg, err error) {
		var m *stored.Message
		if err == nil {
			m, err = stored.Parse(answer.Data)
		}
		if errors.Is(err, stored.ErrNone) {
			m, err = nil, nil
		}
		c.Do(func() { done(m, err) })
	})
}

// Call calls the JetStream API at a subject such as $JS.API.STREAM.INFO.S, with ask as JSON (nil: without a body). It
// reads the answer into answer and calls done on the loop.
func (c *Client) Call(subject string, ask, answer any, done func(err error)) {
	var body []byte
	if ask != nil {
		body, _ = json.Marshal(ask) // maps of strings and numbers cannot fail
	}
	c.Request(&nats.Msg{Subject: subject, Data: body}, func(m *nats.Msg, err error) {
		if err == nil {
			err = Decode(m.Data, answer)
		}
		c.Do(func() { done(err) })
	})
}

// Decode reads an answer of the JetStream API into answer, or returns the error in it.
func Decode(data []byte, answer any) error {
	var refused struct {
		Error *Error `json:"error"`
	}
	if err := errors.Join(json.Unmarshal(data, &refused), json.Unmarshal(data, answer)); err != nil {
		return fmt.Errorf("answer of JetStream: %w", err)
	}
	if refused.Error != nil {
		return refused.Error
	}
	return nil
}
