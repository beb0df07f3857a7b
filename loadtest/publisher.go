package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
)

// publisher creates the events of a run. Replies arrive at inbox followed by the event's number.
type publisher struct {
	js       jetstream.JetStream
	scenario *scenario
	owners   int
	inbox    string // with the dot at its end
}

func newPublisher(s *testbed, sc *scenario, owners int) *publisher {
	return &publisher{s.js, sc, owners, s.nc.NewInbox() + "."}
}

func (p *publisher) message(id int) *nats.Msg {
	part := p.scenario.partOf(id)
	owner := ownerName(p.scenario.ownerOf(id, p.owners))
	m := &nats.Msg{Subject: events.Subjects(events.DefaultPrefix).Event(part.kind, owner, part.name()),
		Data: part.body(nil, id)}
	m.Header = nats.Header{events.HeaderReplyTo: {p.inbox + strconv.Itoa(id)}, events.HeaderEventID: {eventID(id)}}
	if part.kind == events.Task {
		m.Header[events.HeaderContentType] = []string{"application/json"}
	}
	return m
}

// publishPatience is how long a publish waits while too many events are not acknowledged.
const publishPatience = 20 * time.Second

// publish does not wait for the stream's acknowledgement, unless too many are outstanding.
func (p *publisher) publish(id int) error {
	_, err := p.js.PublishMsgAsync(p.message(id), jetstream.WithStallWait(publishPatience))
	return err
}

// flush waits for all acknowledgements.
func (p *publisher) flush(patience time.Duration) error {
	select {
	case <-p.js.PublishAsyncComplete():
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%d publishes are not acknowledged after %s", p.js.PublishAsyncPending(), patience)
	}
}

// newStreamer sends events whose bodies go in parts and come back in chunks, with the client for publishers. A reply
// counts as received when the last chunk of its body has arrived.
func newStreamer(s *testbed, sc *scenario, j *verifier, owners int) (func(id int) error, error) {
	c, err := client.New(s.nc)
	if err != nil {
		return nil, err
	}
	return func(id int) error {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			part := sc.partOf(id)
			reply, body, err := c.Open(ctx, client.Request{
				Kind: part.kind, Owner: ownerName(sc.ownerOf(id, owners)), Worker: part.name(), ID: eventID(id),
				BodyFrom: bytes.NewReader(part.body(nil, id)),
			})
			if err != nil {
				j.note("event %d: %v", id, err)
				return
			}
			text, err := readAll(body)
			if err != nil {
				j.note("event %d: body of the reply: %v", id, err)
				return
			}
			j.takeStream(id, reply, text, time.Now())
		}()
		return nil
	}, nil
}

func readAll(body io.ReadCloser) ([]byte, error) {
	defer func() { _ = body.Close() }() // the body is complete, or Read returned the error
	return io.ReadAll(body)
}
