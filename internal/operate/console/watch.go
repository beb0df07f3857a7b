package console

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
)

const (
	// sampleEvery is the time between two looks at the fleet.
	sampleEvery = 2 * time.Second
	// maxSamples is how many looks the console keeps, for its lines.
	maxSamples = 90
	// watchFor is how long it goes on to look when nobody looks at it: a person who comes back finds the lines.
	watchFor = 2 * time.Minute
)

// watcher looks at the fleet while somebody looks at the console: once for all of them.
type watcher struct {
	fleet  *control.Client
	life   context.Context //nolint:containedctx // of the goroutine
	end    context.CancelFunc
	ending sync.WaitGroup

	mu      sync.Mutex
	wanted  time.Time // when somebody last asked
	running bool
	state   sampled
	changed chan struct{} // closed at the next look
}

// sampled is what the last looks saw.
type sampled struct {
	Now     flow.Summary
	Err     error // of the last look
	Number  int   // of looks
	samples []flow.Summary
}

// Line has the values of a figure, oldest first.
func (s sampled) Line(figure string) []float64 {
	line := make([]float64, 0, len(s.samples))
	for _, one := range s.samples {
		v := 0.0
		switch figure {
		case "events":
			v = one.Events
		case "failed":
			v = one.Failed
		case "stored":
			v = float64(one.Stored.Events)
		case "duration":
			v = of(one.DurationP99)
		case "wait":
			v = of(one.WaitP99)
		}
		line = append(line, v)
	}
	return line
}

// Rated reports whether there are rates: they follow from two looks.
func (s sampled) Rated() bool { return len(s.samples) > 0 }

// busyOwner is an owner that has events in some process, or of which events ended between the last two looks.
type busyOwner struct {
	flow.Owner
	Events, Failed float64 // a second, of its workers among the busiest
}

// Busy are the owners with events, those with most first. A process that is done with events within milliseconds hardly
// ever has one at the moment of a look, so what ended counts too.
func (s sampled) Busy() []busyOwner {
	of := map[string]*busyOwner{}
	one := func(name string) *busyOwner {
		if of[name] == nil {
			of[name] = &busyOwner{Owner: flow.Owner{Owner: name}}
		}
		return of[name]
	}
	for _, o := range s.Now.Owners {
		one(o.Owner).Owner = o
	}
	for _, w := range s.Now.Workers {
		if w.Events > 0 {
			name, _, _ := strings.Cut(w.Worker, "/")
			o := one(name)
			o.Events, o.Failed = o.Events+w.Events, o.Failed+w.Failed
		}
	}
	list := make([]busyOwner, 0, len(of))
	for _, o := range of {
		list = append(list, *o)
	}
	slices.SortFunc(list, func(a, b busyOwner) int {
		return cmp.Or(cmp.Compare(b.Queued, a.Queued), cmp.Compare(b.Events, a.Events), cmp.Compare(b.Running, a.Running),
			cmp.Compare(a.Owner.Owner, b.Owner.Owner))
	})
	return list
}

func of(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

func newWatcher(fleet *control.Client) *watcher {
	w := &watcher{fleet: fleet, changed: make(chan struct{})}
	w.life, w.end = context.WithCancel(context.Background())
	return w
}

// after returns the state once there were more than n looks.
func (w *watcher) after(ctx context.Context, n int) (sampled, error) {
	for {
		w.mu.Lock()
		w.wanted = time.Now()
		if !w.running && w.life.Err() == nil {
			w.running = true
			w.ending.Go(w.run)
		}
		state, changed := w.state, w.changed
		w.mu.Unlock()
		if state.Number > n {
			return state, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return state, ctx.Err()
		case <-w.life.Done():
			return state, w.life.Err()
		}
	}
}

// run looks until nobody has asked for a while. It forgets the looks then: a line has no gaps.
func (w *watcher) run() {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	var before flow.Snapshot
	for {
		now, err := flow.Take(w.life, w.fleet)
		did := flow.Between(before, now)
		if err == nil {
			before = now
		}
		w.mu.Lock()
		w.note(did, err)
		stop := time.Since(w.wanted) > watchFor || w.life.Err() != nil
		if stop {
			w.running, w.state = false, sampled{}
		}
		w.mu.Unlock()
		if stop {
			return
		}
		select {
		case <-tick.C:
		case <-w.life.Done():
		}
	}
}

// note keeps a look. The first one has no rates: it is shown, and is no point of a line. w.mu is locked.
func (w *watcher) note(did flow.Summary, err error) {
	s := w.state
	if s.Err = err; err == nil {
		if s.Now = did; s.Number > 0 {
			s.samples = append(s.samples[max(0, len(s.samples)-maxSamples+1):len(s.samples):len(s.samples)], did)
		}
	}
	s.Number++
	w.state = s
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *watcher) close() {
	w.mu.Lock()
	w.end() // from now on after begins no goroutine
	w.mu.Unlock()
	w.ending.Wait()
}
