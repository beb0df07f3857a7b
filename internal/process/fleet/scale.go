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
	"github.com/pinwheel-run/pinwheel/internal/process/minutes"
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
	load    load
	minutes *minutes.Ring

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
	s.minutes = minutes.New(func(owners int) minutes.Look {
		return minutes.Look{All: figures.Flow(), Owners: figures.OwnersWork(owners)}
	})
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
		s.minutes.Tick(time.Now())
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
		if s.Paused, err = pausedEvents(ctx, p); err != nil {
			return s, fmt.Errorf("ask what is stored of paused owners: %w", err)
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

// storedOf counts the events of an owner, or of one of its workers, in all lanes and parked, but those parked ones that
// wait until they are resumed.
func storedOf(ctx context.Context, p *Process, owner, worker string) (uint64, error) {
	sum, prefix := uint64(0), events.Subjects(p.cfg.Prefix)
	for _, filter := range prefix.StoredFor(owner, cmp.Or(worker, "*")) {
		n, err := jsapi.CountMessages(ctx, p.link.nc, events.StreamEvents, filter, 0)
		if err != nil {
			return 0, err
		}
		sum += uint64(n)
	}
	parked := prefix.ParkedFor(owner, cmp.Or(worker, "*"))
	for _, filter := range []string{parked, events.Held(parked)} {
		_, others, err := parkedEvents(ctx, p, filter)
		if err != nil {
			return 0, err
		}
		sum += others
	}
	return sum, nil
}

// maxPausedAsked is how many owners with pauses are asked about one by one. With more, all parked events are counted.
const maxPausedAsked = 32

// pausedEvents counts the parked events of paused owners and workers: they wait for no process.
func pausedEvents(ctx context.Context, p *Process) (sum uint64, err error) {
	prefix := events.Subjects(p.cfg.Prefix)
	var filters []string
	for owner, policy := range p.deployed.catalog.Policies() {
		if len(policy.Paused) > 0 {
			filters = append(filters, prefix.ParkedOwner(owner))
		}
	}
	if len(filters) > maxPausedAsked {
		filters = []string{prefix.AllParked()}
	}
	for _, filter := range filters {
		n, _, err := parkedEvents(ctx, p, filter)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// parkedEvents counts the parked events of a filter: those of paused owners and workers, and the others.
func parkedEvents(ctx context.Context, p *Process, filter string) (paused, others uint64, err error) {
	prefix := events.Subjects(p.cfg.Prefix)
	for offset := 0; ; {
		subjects, all, err := jsapi.CountSubjects(ctx, p.link.nc, events.StreamParked, filter, offset)
		if err != nil {
			return 0, 0, err
		}
		for subject, n := range subjects {
			owner, worker, _, ok := prefix.ParseParked(subject)
			switch {
			case !ok: // the anchor
			case p.deployed.catalog.Policy(owner).IsPaused(worker):
				paused += n
			default:
				others += n
			}
		}
		if offset += len(subjects); len(subjects) == 0 || uint64(offset) >= all {
			return paused, others, nil
		}
	}
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
