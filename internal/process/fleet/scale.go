package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
)

const (
	// busyEvery is how often a process looks what it does, and busyLooks how many looks its load is made of.
	busyEvery, busyLooks = time.Second, 11
	// scaleEvery is for how long an answer about the fleet holds: whoever asks the admin port often costs nothing.
	scaleEvery = time.Second
	// scaleWithin is how long the fleet has to say what it does.
	scaleWithin = 3 * time.Second
)

// scaling knows how busy this process is, and asks the fleet what it has to do. Call setLoad before any other method.
type scaling struct {
	load load

	mu   sync.Mutex                                   // held while the fleet is asked: others wait for the same answer
	take func(context.Context) (flow.Snapshot, error) // nil: the process does not answer requests yet
	at   time.Time                                    // when the fleet was asked last
	last flow.Snapshot
	err  error // why there is no last
}

// load is what a process did in the last seconds.
type load struct {
	figures             dispatch.Figures
	threads, background int // threads that run JavaScript
	slots               int // of each thread

	mu    sync.Mutex
	looks []loadLook // the oldest first, at most busyLooks
}

// loadLook is one look at the figures.
type loadLook struct {
	at      time.Time
	slept   time.Duration // so far, of all threads
	running int           // events in progress
}

// setLoad says what the load is made of, and registers its metric.
func (s *scaling) setLoad(figures dispatch.Figures, cfg dispatch.Config, metrics prometheus.Registerer) error {
	s.load.figures, s.load.threads, s.load.background, s.load.slots = figures, cfg.Threads, cfg.Background, cfg.Slots
	return RegisterMetrics(metrics, s.busy)
}

// RegisterMetrics registers the metrics of this package. busy returns control.Flow.Busy of the process.
func RegisterMetrics(metrics prometheus.Registerer, busy func() *float64) error {
	return metrics.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pinwheel_busy",
		Help: "Share of what the process can do that it did in the last 10 s, 0 to 1: of the time of its threads or of its slots, whichever is more.",
	}, func() float64 {
		if share := busy(); share != nil {
			return *share
		}
		return 0
	}))
}

// run looks what the process does until ctx is done.
func (s *scaling) run(ctx context.Context) {
	tick := time.NewTicker(busyEvery)
	defer tick.Stop()
	for {
		s.load.look(time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (l *load) look(now time.Time) {
	one := loadLook{now, l.figures.Slept(), l.figures.Stats().Running}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looks = append(l.looks, one)
	l.looks = l.looks[max(0, len(l.looks)-busyLooks):]
}

// busy is control.Flow.Busy.
func (s *scaling) busy() *float64 {
	s.load.mu.Lock()
	defer s.load.mu.Unlock()
	return s.load.share()
}

// share is the larger one of two shares: of the time of the threads that have a processor each, in which any thread
// was awake; and of the slots that events took.
func (l *load) share() *float64 {
	if len(l.looks) < 2 {
		return nil
	}
	first, last := l.looks[0], l.looks[len(l.looks)-1]
	span := last.at.Sub(first.at).Seconds()
	awake := float64(l.threads+l.background)*span - (last.slept - first.slept).Seconds()
	running := 0
	for _, one := range l.looks {
		running += one.running
	}
	slots := float64(running) / float64(len(l.looks)*l.threads*l.slots)
	return new(min(1, max(0, slots, awake/(float64(l.threads)*span))))
}

// answer has the fleet asked by take from now on.
func (s *scaling) answer(take func(context.Context) (flow.Snapshot, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take = take
}

// snapshot returns what the fleet says, or said less than scaleEvery ago. A requester that goes away does not end the
// question: others wait for its answer.
func (s *scaling) snapshot(ctx context.Context) (flow.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.take == nil:
		return flow.Snapshot{}, errors.New("the fleet's counts are not known: this process starts")
	case s.at.IsZero() || time.Since(s.at) >= scaleEvery:
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scaleWithin)
		defer cancel()
		if s.last, s.err = s.take(ctx); s.err != nil {
			s.err = fmt.Errorf("the fleet's counts are not known: %w", s.err)
		}
		s.at = time.Now()
	}
	return s.last, s.err
}

// Scale returns how many processes the fleet needs, for the admin port. target is how many events may wait for each; 0
// = flow.DefaultTarget.
func (p *Process) Scale(ctx context.Context, target int) (any, error) {
	now, err := p.scale.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if target == 0 {
		target = flow.DefaultTarget
	}
	s, err := flow.ScaleOf(now, target)
	if err != nil {
		return nil, fmt.Errorf("the fleet's counts are not known: %w", err)
	}
	return s, nil
}

// countsOf asks for all that Scale is made of. What is stored is asked of the leader of each stream, by this process:
// another one that hangs delays nothing.
func countsOf(p *Process, server *control.Server) func(context.Context) (flow.Snapshot, error) {
	client := control.NewClient(p.link.nc, p.cfg.Prefix, p.cfg.ControlToken)
	return func(ctx context.Context) (s flow.Snapshot, err error) {
		if err := p.link.check(); err != nil {
			return s, err
		}
		s.At = time.Now()
		if s.Stored, err = server.Stats(ctx, control.None{}); err != nil {
			return s, fmt.Errorf("ask what is stored: %w", err)
		}
		if s.Flows, s.Missing, err = client.Flows(ctx); err != nil {
			return s, fmt.Errorf("ask the processes: %w", err)
		}
		s.Limits = flow.ReachedLimits(s.Flows)
		for i := range s.Limits {
			if s.Limits[i].Stored, err = storedOf(ctx, p, s.Limits[i].Owner, s.Limits[i].Worker); err != nil {
				return s, fmt.Errorf("ask what is stored of %s: %w", s.Limits[i].Owner, err)
			}
		}
		return s, nil
	}
}

// storedOf counts the events of an owner, or of one of its workers, in all lanes and parked.
func storedOf(ctx context.Context, p *Process, owner, worker string) (uint64, error) {
	sum, prefix := 0, events.Subjects(p.cfg.Prefix)
	for stream, filter := range map[string]string{
		events.StreamEvents: prefix.StoredFor(owner, cmp.Or(worker, "*")),
		events.StreamParked: prefix.ParkedFor(owner, cmp.Or(worker, "*")),
	} {
		n, err := jsapi.CountMessages(ctx, p.link.nc, stream, filter, 0)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return uint64(sum), nil
}

// Scale returns what a child says: each knows the whole fleet.
func (s *supervised) Scale(ctx context.Context, target int) (any, error) {
	path := "/scale"
	if target != 0 {
		path = fmt.Sprintf("/scale?target=%d", target)
	}
	body, err := s.First(ctx, path)
	return json.RawMessage(body), err
}
