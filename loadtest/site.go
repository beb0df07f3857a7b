package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
)

// Topologies.
const (
	topologyEmbedded = "embedded"
	topologyOne      = "one"
	topologyR3       = "r3"
)

func topologies() []string { return []string{topologyEmbedded, topologyOne, topologyR3} }

// stream has the events (docs/operations.md).
const (
	stream       = "PINWHEEL_EVENTS"
	streamDead   = "PINWHEEL_DEAD"
	streamParked = "PINWHEEL_PARKED"
	subjects     = events.Subjects(events.DefaultPrefix)
)

// site is where a run takes place: NATS and what consumes, started for it alone.
type site struct {
	dir     string
	servers []*child
	system  *child // the fleet, or a peer
	fleet   *fleet // nil: a peer
	url     string
	nc      *nats.Conn
	js      jetstream.JetStream
	refused func(error) // takes what the stream has against an event
	meter   *meter
}

// publishWindow is how many publishes may be unacknowledged.
const publishWindow = 4096

// open starts what c says.
func (r *runner) open(ctx context.Context, sc *scenario, c Case) (s *site, err error) {
	s = &site{refused: func(error) {}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.dir, err = os.MkdirTemp(r.dir, "run-"); err != nil {
		return s, err
	}
	servers := map[string]int{topologyEmbedded: 0, topologyOne: 1, topologyR3: 3}[c.Topology]
	if servers > 0 {
		if s.servers, s.url, err = startServers(ctx, s.dir, servers); err != nil {
			return s, err
		}
	}
	if c.System != ours {
		return s, r.openPeer(ctx, s, c)
	}
	s.fleet, err = startFleet(ctx, fleetOptions{
		binary: r.pinwheel, natsURL: s.url, dir: filepath.Join(s.dir, "data"), processes: c.Processes, replicas: servers,
		env: append(slices.Clone(sc.env), r.o.env...),
	})
	if err != nil {
		return s, err
	}
	s.system, s.url = s.fleet.child, s.fleet.url
	return s, s.connect()
}

func (s *site) connect() (err error) {
	if s.nc, err = nats.Connect(s.url, nats.Name("loadtest")); err != nil {
		return err
	}
	s.js, err = jetstream.New(s.nc, jetstream.WithPublishAsyncMaxPending(publishWindow),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, m *nats.Msg, err error) {
			if !strings.HasPrefix(m.Subject, "$KV.") { // a worker that is there already
				s.refused(fmt.Errorf("the stream did not take an event: %w", err))
			}
		}))
	s.meter = newMeter(s.system, s.servers)
	return err
}

// close ends all of it and removes its data.
func (s *site) close() {
	if s.nc != nil {
		s.nc.Close()
	}
	if s.system != nil {
		s.system.stop(5 * time.Second)
	}
	stopAll(s.servers)
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// alive is an error when a child has died.
func (s *site) alive() error {
	err := s.system.ended()
	for _, c := range s.servers {
		err = errors.Join(err, c.ended())
	}
	return err
}

// pause keeps the stream's consumers from delivering, or lets them go on. So a stream can be filled while the fleet is up.
func (s *site) pause(ctx context.Context, paused bool) error {
	st, err := s.js.Stream(ctx, stream)
	if err != nil {
		return err
	}
	names := st.ConsumerNames(ctx)
	for name := range names.Name() {
		if paused {
			_, err = st.PauseConsumer(ctx, name, time.Now().Add(time.Hour))
		} else {
			_, err = st.ResumeConsumer(ctx, name)
		}
		if err != nil {
			return fmt.Errorf("pause consumer %s: %w", name, err)
		}
	}
	return names.Err()
}

// backlog is how many events are stored. The messages that keep the event stream from being empty are none.
func (s *site) backlog(ctx context.Context, name string) (int, error) {
	st, err := s.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) { // of a peer
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	pin := subjects.Pin()
	if name == streamParked {
		pin = subjects.ParkedPin()
	}
	info, err := st.Info(ctx, jetstream.WithSubjectFilter(pin))
	if err != nil {
		return 0, err
	}
	return int(info.State.Msgs - info.State.Subjects[pin]), nil //nolint:gosec // far below
}

// settled waits until every event is acked. The error says what is left, or became a dead letter.
func (s *site) settled(ctx context.Context, patience time.Duration) error {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		switch left, err := s.left(ctx); {
		case err != nil:
			return err
		case left == 0:
			return s.dead(ctx)
		case time.Now().After(end):
			return fmt.Errorf("%d events are answered and not acked", left)
		}
	}
}

// left is how many events are not acked, wherever they are.
func (s *site) left(ctx context.Context) (int, error) {
	stored, err1 := s.backlog(ctx, stream)
	parked, err2 := s.backlog(ctx, streamParked)
	return stored + parked, errors.Join(err1, err2)
}

// dead is an error when events became dead letters.
func (s *site) dead(ctx context.Context) error {
	n, err := s.backlog(ctx, streamDead)
	if err == nil && n > 0 {
		err = fmt.Errorf("%d events became dead letters", n)
	}
	return err
}
