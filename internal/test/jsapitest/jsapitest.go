// Package jsapitest gives tests of the packages under consumer what these packages work with: a NATS server that has
// the streams and buckets of a fleet, and a Client with a loop that runs. No consumer runs.
package jsapitest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/storage"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// Prefix is the prefix of the fleet.
const Prefix = events.Subjects(events.DefaultPrefix)

// patience is for results that must come.
const patience = 20 * time.Second

// Bed is a server with the streams and buckets of a fleet.
type Bed struct {
	NC    *nats.Conn
	JS    jetstream.JetStream
	API   *jsapi.Client
	Usage *storage.Usage // it does not run: all streams count as empty

	t testing.TB
}

// Open starts a server that ends with the test. change may change the configuration of the fleet.
func Open(t testing.TB, change ...func(*consumer.Config)) *Bed {
	t.Helper()
	cfg := consumer.DefaultConfig()
	cfg.MaxBytes, cfg.DeadLetterBytes = 64<<20, 64<<20
	for _, f := range change {
		f(&cfg)
	}
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	require.NoError(t, consumer.CreateAssets(t.Context(), js, cfg, nc.MaxPayload()))
	b := &Bed{
		NC: nc, JS: js, t: t,
		API: &jsapi.Client{Requester: jsapi.NewRequester(nc), Loop: jsapi.NewLoop(), NC: nc, JS: js, Wait: 5 * time.Second,
			Missing: func() {}},
		Usage: storage.New(storage.Config{Prefix: Prefix, Node: "test", MaxBytes: cfg.MaxBytes, Replicas: 1}, nc, js,
			zerolog.Nop()),
	}
	require.NoError(t, b.API.Open())
	ctx, end := context.WithCancel(context.Background())
	var loop sync.WaitGroup
	loop.Go(func() { b.run(ctx) })
	t.Cleanup(func() {
		end()
		loop.Wait()
		b.API.Close()
	})
	return b
}

// run is the loop of the Client.
func (b *Bed) run(ctx context.Context) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var tasks []func()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			b.API.Expire(now)
		case <-b.API.Wake:
			tasks = b.API.Take(tasks)
			for _, f := range tasks {
				f()
			}
		}
	}
}

// Result calls start on the loop, and returns what start passes to done.
func Result[T any](b *Bed, start func(done func(T, error))) (T, error) {
	b.t.Helper()
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	b.API.Do(func() { start(func(value T, err error) { results <- result{value, err} }) })
	select {
	case r := <-results:
		return r.value, r.err
	case <-time.After(patience):
		b.t.Fatal("done was not called")
		panic("unreachable")
	}
}

// Done calls start on the loop, and returns the error that start passes to done.
func (b *Bed) Done(start func(done func(error))) error {
	b.t.Helper()
	_, err := Result(b, func(done func(struct{}, error)) { start(func(err error) { done(struct{}{}, err) }) })
	return err
}

// Stored returns the number of messages in a stream.
func (b *Bed) Stored(stream string) int {
	b.t.Helper()
	s, err := b.JS.Stream(b.t.Context(), stream)
	require.NoError(b.t, err)
	return int(s.CachedInfo().State.Msgs)
}

// Task is a task of acme/w that is the message seq of the event stream, stored at the given time.
func Task(seq uint64, id string, stored time.Time) *events.Event {
	subject := Prefix.Event(events.Task, "acme", "w")
	return &events.Event{
		Kind: events.Task, Owner: "acme", Worker: "w", ID: id, Stored: stored,
		Origin: events.Origin{Stream: events.StreamEvents, Seq: seq, Subject: subject},
	}
}
