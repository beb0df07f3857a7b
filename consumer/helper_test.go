package consumer_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/process/natsd"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

const (
	patience = time.Minute // for facts that must come true
	subjects = events.Subjects(events.DefaultPrefix)
)

// handler returns the settlement of an event. With ok false, the handler settles it itself later.
type handler func(e *lifecycle.Delivery) (s lifecycle.Settlement, ok bool)

// dispatcher runs a Go function for each event, one goroutine for each unless inline.
type dispatcher struct {
	handle handler
	inline bool
	forget bool // do not keep the events

	through atomic.Uint64 // parks of the latest call of Through

	mu     sync.Mutex
	settle func([]lifecycle.Settlement)
	seen   []*lifecycle.Delivery
}

func (d *dispatcher) Through(_ string, parks uint64) bool {
	d.through.Store(parks)
	return false
}

// Cancel does nothing: all events run at once.
func (d *dispatcher) Cancel([]*lifecycle.Delivery, bool) []*lifecycle.Delivery { return nil }

func (d *dispatcher) Submit(batch []*lifecycle.Delivery) {
	if !d.forget {
		d.mu.Lock()
		d.seen = append(d.seen, batch...)
		d.mu.Unlock()
	}
	if d.inline {
		var done []lifecycle.Settlement
		for _, e := range batch {
			if s, ok := d.handle(e); ok {
				done = append(done, s)
			}
		}
		d.settle(done)
		return
	}
	for _, e := range batch {
		go func() {
			if s, ok := d.handle(e); ok {
				d.settle([]lifecycle.Settlement{s})
			}
		}()
	}
}

func (d *dispatcher) events() []*lifecycle.Delivery {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]*lifecycle.Delivery(nil), d.seen...)
}

func ack(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
	return lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{Verdict: lifecycle.Ack, Version: "1-abc"}}, true
}

func echo(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
	s, ok := ack(e)
	s.Reply = &events.Reply{Status: 200, Body: e.Body, EventID: e.ID, Attempt: e.Attempt, Version: "1-abc"}
	return s, ok
}

func park(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
	return lifecycle.Settlement{Event: e, Order: lifecycle.Park}, true
}

func dead(e *lifecycle.Delivery) (lifecycle.Settlement, bool) {
	return lifecycle.Settlement{Event: e, Outcome: lifecycle.Outcome{
		Verdict: lifecycle.Dead, Version: "1-abc", Failure: events.NewFailure(events.ReasonException, "boom",
			"Error: boom\n    at hello.js:3:7"),
	}}, true
}

// fleet is one running Consumer.
type fleet struct {
	*consumer.Consumer
	catalog *catalog.Catalog
	d       *dispatcher
	stop    func() // drains and waits
	halt    func() // ends at once, as far as Run can
	done    chan struct{}
}

// testConfig has the default lease. It is not over when an event waits for a slow machine: no test sees it again.
func testConfig() consumer.Config {
	c := consumer.DefaultConfig()
	c.Node, c.Heartbeat, c.MaxBytes, c.Window = "test", 200*time.Millisecond, 64<<20, 128
	return c
}

// idempotent returns a catalog in which a worker w of each owner is idempotent.
func idempotent(owners ...string) *catalog.Catalog {
	c := &catalog.Catalog{}
	for _, o := range owners {
		c.Install(workers.Only(&workers.Worker{Owner: o, Name: "w", Spec: workers.Spec{Idempotent: true}}))
	}
	return c
}

// leased is testConfig for tests that lose deliveries on the way: they come again after the ack wait.
func leased(ackWait time.Duration) consumer.Config {
	c := testConfig()
	c.AckWait = ackWait
	return c
}

func start(t testing.TB, nc *nats.Conn, cfg consumer.Config, d *dispatcher) *fleet {
	t.Helper()
	return startWithin(t, patience, nc, cfg, d)
}

func startWithin(t testing.TB, patience time.Duration, nc *nats.Conn, cfg consumer.Config, d *dispatcher) *fleet {
	t.Helper()
	if cfg.Catalog == nil {
		cfg.Catalog = &catalog.Catalog{}
	}
	c, err := consumer.New(cfg, nc, d, testLog(t), nil)
	require.NoError(t, err)
	d.settle = c.Settle
	pull, stopPull := context.WithCancel(context.Background())
	work, stopWork := context.WithCancel(context.Background())
	done := make(chan struct{})
	var runErr error
	go func() {
		defer close(done)
		runErr = c.Run(pull, work)
	}()
	f := &fleet{Consumer: c, catalog: cfg.Catalog, d: d, done: done}
	f.stop = func() { stopPull(); <-done }
	f.halt = func() { stopWork(); stopPull(); <-done }
	t.Cleanup(func() {
		f.halt()
		require.NoError(t, runErr)
	})
	require.Eventually(t, func() bool { return c.Ready() == nil }, patience, time.Millisecond)
	t.Cleanup(func() { explain(t, nc, c) })
	return f
}

// explain logs the state when a test has failed.
func explain(t testing.TB, nc *nats.Conn, c *consumer.Consumer) {
	if !t.Failed() || !nc.IsConnected() {
		return
	}
	t.Logf("consumer: %+v", c.Stats())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	js := jetStream(t, nc)
	for _, name := range []string{events.StreamEvents, events.StreamSchedules, events.StreamParked} {
		s, err := js.Stream(ctx, name)
		if err != nil {
			t.Log(err)
			continue
		}
		state := s.CachedInfo().State
		t.Logf("stream %s: %+v", name, state)
		for seq, n := state.FirstSeq, 0; seq <= state.LastSeq && n < 4; seq++ { // the pin is one of them
			if m, err := s.GetMsg(ctx, seq); err == nil {
				n++
				t.Logf("%d %s stored %v: %v %.100q", seq, m.Subject, m.Time, m.Header, m.Data)
			}
		}
		for i := range s.ListConsumers(ctx).Info() {
			if i.NumPending+uint64(i.NumAckPending) > 0 {
				t.Logf("%s: pending %d, ack pending %d, redelivered %d, waiting %d, %+v %+v", i.Name, i.NumPending, i.NumAckPending, i.NumRedelivered,
					i.NumWaiting, i.Delivered, i.AckFloor)
			}
		}
	}
}

func testLog(t testing.TB) zerolog.Logger {
	if os.Getenv("PINWHEEL_TEST_LOG") == "" {
		return zerolog.Nop()
	}
	return zerolog.New(zerolog.NewTestWriter(t)).With().Timestamp().Logger()
}

func jetStream(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}

func publish(t testing.TB, nc *nats.Conn, kind events.Kind, owner string, h nats.Header, body string) uint64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ack, err := jetStream(t, nc).PublishMsg(ctx, &nats.Msg{Subject: subjects.Event(kind, owner, "w"), Header: h,
		Data: []byte(body)})
	require.NoError(t, err)
	return ack.Sequence
}

// stored is the number of messages in a stream, pins not counted.
func stored(t testing.TB, js jetstream.JetStream, stream string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	pins := map[string]string{
		events.StreamEvents: subjects.Anchor(), events.StreamSchedules: subjects.SchedulesAnchor(),
		events.StreamParked: subjects.ParkedAnchor(),
	}
	n, err := resources.Count(ctx, js, stream, pins[stream])
	require.NoError(t, err)
	return int(n)
}

func eventuallyStored(t testing.TB, js jetstream.JetStream, stream string, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return stored(t, js, stream) == n }, patience, 20*time.Millisecond,
		"messages in %s", stream)
}

// inbox is where replies come to.
func inbox(t testing.TB, nc *nats.Conn) (string, *nats.Subscription) {
	t.Helper()
	subject := nats.NewInbox()
	sub, err := nc.SubscribeSync(subject)
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	return subject, sub
}

// restart stops a server and starts it again on the same port with the same data.
type restartable struct {
	t    testing.TB
	dir  string
	port int
	srv  *natsd.Server
}

func startRestartable(t testing.TB) *restartable {
	r := &restartable{t: t, dir: natstest.StoreDir(t), port: -1}
	r.up()
	url := r.srv.URL()
	_, err := fmt.Sscanf(url[strings.LastIndex(url, ":"):], ":%d", &r.port)
	require.NoError(t, err)
	t.Cleanup(func() { r.srv.Close() })
	return r
}

func (r *restartable) up() {
	var err error
	require.Eventually(r.t, func() bool {
		r.srv, err = natsd.Open(natsd.Config{StoreDir: r.dir, Port: r.port})
		return err == nil
	}, patience, 20*time.Millisecond)
}

func (r *restartable) connect() *nats.Conn {
	nc, err := natstest.Dial(r.srv.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond),
		nats.ReconnectJitter(0, 0))
	require.NoError(r.t, err)
	r.t.Cleanup(nc.Close)
	return nc
}

func connect(t testing.TB) *nats.Conn { return natstest.Connect(t, natstest.Start(t)) }
