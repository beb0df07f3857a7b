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
	"github.com/pinwheel-run/pinwheel/loadtest/machine"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

func topologies() []string {
	return []string{report.TopologyEmbedded, report.TopologyOne, report.TopologyR3}
}

const subjects = events.Subjects(events.DefaultPrefix)

// testbed is the environment of a run: NATS and a consumer, started for this run alone.
type testbed struct {
	dir     string
	servers []*machine.Child
	system  *machine.Child // the fleet or a peer
	fleet   *fleet         // nil for a peer
	url     string
	nc      *nats.Conn
	js      jetstream.JetStream
	refused func(error) // is called when the stream refuses an event
	meter   *machine.Meter
}

// publishWindow is how many published events may be unacknowledged.
const publishWindow = 4096

// open starts what c needs.
func (r *runner) open(ctx context.Context, sc *scenario, c report.Case) (s *testbed, err error) {
	s = &testbed{refused: func(error) {}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.dir, err = os.MkdirTemp(r.stores, "run-"); err != nil {
		return s, err
	}
	servers := map[string]int{report.TopologyEmbedded: 0, report.TopologyOne: 1, report.TopologyR3: 3}[c.Topology]
	if servers > 0 {
		if s.servers, s.url, err = machine.StartServers(ctx, s.dir, servers); err != nil {
			return s, err
		}
	}
	if c.System != report.Ours {
		return s, r.openPeer(ctx, s, c)
	}
	s.fleet, err = startFleet(ctx, fleetOptions{
		binary: r.pinwheel, natsURL: s.url, dir: filepath.Join(s.dir, "data"), processes: c.Processes, replicas: servers,
		env: slices.Concat(sc.env, cellEnv(c.Cell), r.o.env),
	})
	if err != nil {
		return s, err
	}
	s.system, s.url = s.fleet.Child, s.fleet.url
	return s, s.connect()
}

// cellEnv has JavaScript of owners run in such a cell.
func cellEnv(cell string) []string {
	if cell == "" {
		return nil
	}
	return []string{"PINWHEEL_CELL=" + cell}
}

func (s *testbed) connect() (err error) {
	if s.nc, err = nats.Connect(s.url, nats.Name("loadtest"), machine.Patient); err != nil {
		return err
	}
	s.js, err = jetstream.New(s.nc, jetstream.WithPublishAsyncMaxPending(publishWindow),
		jetstream.WithPublishAsyncErrHandler(func(_ jetstream.JetStream, m *nats.Msg, err error) {
			if !strings.HasPrefix(m.Subject, "$KV.") { // a worker that is already stored
				s.refused(fmt.Errorf("the stream did not take an event: %w", err))
			}
		}))
	s.meter = machine.NewMeter(s.system, s.servers)
	return err
}

// close ends everything and removes its data.
func (s *testbed) close() {
	if s.nc != nil {
		s.nc.Close()
	}
	if s.system != nil {
		s.system.Stop(5 * time.Second)
	}
	machine.StopAll(s.servers)
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// alive returns an error when a child has ended.
func (s *testbed) alive() error {
	err := s.system.Ended()
	for _, c := range s.servers {
		err = errors.Join(err, c.Ended())
	}
	return err
}

// pause stops the delivery of the stream's consumers, or resumes it. So a stream can be filled while the fleet is up.
func (s *testbed) pause(ctx context.Context, paused bool) error {
	st, err := s.js.Stream(ctx, events.StreamEvents)
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

// backlog returns the number of stored events. It does not count the anchor messages, which keep the event stream from
// being empty.
func (s *testbed) backlog(ctx context.Context, name string) (int, error) {
	st, err := s.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) { // a peer has no such stream
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	pin := subjects.Anchor()
	if name == events.StreamParked {
		pin = subjects.ParkedAnchor()
	}
	info, err := st.Info(ctx, jetstream.WithSubjectFilter(pin))
	if err != nil {
		return 0, err
	}
	return int(info.State.Msgs - info.State.Subjects[pin]), nil
}

// settled waits until every event is acked. The error says which events are left, or became dead letters.
func (s *testbed) settled(ctx context.Context, patience time.Duration) error {
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

// left returns how many events are not acked, in all streams.
func (s *testbed) left(ctx context.Context) (int, error) {
	stored, err1 := s.backlog(ctx, events.StreamEvents)
	parked, err2 := s.backlog(ctx, events.StreamParked)
	return stored + parked, errors.Join(err1, err2)
}

// dead returns an error when events became dead letters.
func (s *testbed) dead(ctx context.Context) error {
	n, err := s.backlog(ctx, events.StreamDead)
	if err == nil && n > 0 {
		err = fmt.Errorf("%d events became dead letters", n)
	}
	return err
}
