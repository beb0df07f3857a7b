package main

import (
	"bytes"
	"context"
	"io"
	"time"

	"github.com/pinwheel-run/pinwheel/events/client"
)

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
