package client_test

import (
	"context"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/internal/process/natsd"
)

// exampleFleet stands for Pinwheel in the examples: it answers each event as one worker would.
type exampleFleet struct {
	dir    string
	server *natsd.Server
	nc     *nats.Conn
}

// startFleet starts a NATS server, and a fleet whose worker replies "hello " and the event's body. An empty body is an
// exception.
func startFleet() (*exampleFleet, error) {
	dir, err := os.MkdirTemp("", "pinwheel")
	if err != nil {
		return nil, err
	}
	f := &exampleFleet{dir: dir}
	if err := f.open(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// startClient starts such a fleet, and a client that is connected to it. closeAll closes all of them.
func startClient() (pinwheel *client.Client, closeAll func(), err error) {
	f, err := startFleet()
	if err != nil {
		return nil, nil, err
	}
	nc, err := nats.Connect(f.server.URL())
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	if pinwheel, err = client.New(nc); err != nil {
		nc.Close()
		f.Close()
		return nil, nil, err
	}
	return pinwheel, func() { pinwheel.Close(); nc.Close(); f.Close() }, nil
}

func (f *exampleFleet) open() (err error) {
	if f.server, err = natsd.Open(natsd.Config{StoreDir: f.dir, Port: -1}); err != nil {
		return err
	}
	if f.nc, err = nats.Connect(f.server.URL()); err != nil {
		return err
	}
	js, err := jetstream.New(f.nc)
	if err != nil {
		return err
	}
	s := events.Subjects(events.DefaultPrefix)
	st, err := js.CreateStream(context.Background(), jetstream.StreamConfig{
		Name: events.StreamEvents, Subjects: []string{s.AllEvents()}, Retention: jetstream.WorkQueuePolicy,
		SubjectTransform: &jetstream.SubjectTransformConfig{Source: s.AllEvents(), Destination: s.Stored()},
	})
	if err != nil {
		return err
	}
	all, err := st.CreateConsumer(context.Background(), jetstream.ConsumerConfig{Durable: "all",
		AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		return err
	}
	_, err = all.Consume(f.run) // ends with the connection
	return err
}

func (f *exampleFleet) run(m jetstream.Msg) {
	d := events.Decoder{Subjects: events.DefaultPrefix, ReplyPrefixes: []string{"_INBOX."}}
	e, failure := d.Decode(events.Origin{Stream: events.StreamEvents, Subject: m.Subject(), Seq: 1},
		events.Header(m.Headers()), m.Data(), time.Now())
	r := &events.Reply{Status: 200, Body: []byte("hello " + string(e.Body)), EventID: e.ID, Attempt: 1}
	if failure == nil && len(e.Body) == 0 {
		failure = events.Fail(events.ReasonException, "no name")
	}
	if failure != nil {
		r = events.FailureReply(e, 1, failure)
	}
	if e.ReplyTo != "" {
		_ = f.nc.PublishMsg(&nats.Msg{Subject: e.ReplyTo, Header: nats.Header(r.Encode()), Data: r.Body})
	}
	_ = m.Ack()
}

// URL is what a client connects to.
func (f *exampleFleet) URL() string { return f.server.URL() }

// Close ends the fleet and its server.
func (f *exampleFleet) Close() error {
	if f.nc != nil {
		f.nc.Close()
	}
	if f.server != nil {
		f.server.Close()
	}
	return os.RemoveAll(f.dir)
}
