package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
)

// switching is how long after a deployment was stored a process may still divide events as before.
const switching = 500 * time.Millisecond

// rolloutEvent is what is known of an event.
type rolloutEvent struct {
	sent, answered time.Time
	version        string
	attempt        int
	again          bool // it has a reply of another run, too
}

// rolloutStep is a time in which the events are divided in one way.
type rolloutStep struct {
	workers.Deployment
	from time.Time
}

// rolloutSheet has all events of a run, and all deployments.
type rolloutSheet struct {
	inbox string
	keys  int
	// kill is whether processes are killed. One may be killed between a reply and the ack. The event runs again then, and
	// its number of attempts does not count that run.
	kill bool

	watch     jetstream.KeyWatcher // of deployments
	following sync.WaitGroup

	mu       sync.Mutex
	events   []rolloutEvent
	answered int
	steps    []rolloutStep
	faults   []error
}

func newRolloutSheet(keys int, kill bool) *rolloutSheet {
	return &rolloutSheet{inbox: nats.NewInbox() + ".", keys: keys, kill: kill}
}

func (s *rolloutSheet) key(id int) string { return "key-" + strconv.Itoa(id%s.keys) }

// publishing notes that an event is published now. It returns the subject of its reply.
func (s *rolloutSheet) publishing(id int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, rolloutEvent{sent: time.Now()})
	return s.inbox + strconv.Itoa(id)
}

// take takes a reply.
func (s *rolloutSheet) take(m *nats.Msg) {
	id, err1 := strconv.Atoi(strings.TrimPrefix(m.Subject, s.inbox))
	attempt, err2 := strconv.Atoi(first(m.Header, events.HeaderAttempt))
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(err1, err2); err != nil || id < 0 || id >= len(s.events) {
		s.faults = append(s.faults, fmt.Errorf("a reply to %s that no client asked for: %w", m.Subject, err))
		return
	}
	e := &s.events[id]
	if text := first(m.Header, events.HeaderError); text != "" {
		s.faults = append(s.faults, fmt.Errorf("event %d failed: %s", id, text))
	}
	if e.attempt > 0 {
		if attempt < e.attempt || attempt == e.attempt && !s.kill {
			s.faults = append(s.faults, fmt.Errorf("event %d: two replies of attempt %d", id, attempt))
		}
		e.again = true
		return
	}
	e.answered, e.version, e.attempt = time.Now(), first(m.Header, events.HeaderWorkerVersion), attempt
	s.answered++
}

// follow notes all deployments from now on.
func (s *rolloutSheet) follow(ctx context.Context, js jetstream.JetStream) error {
	kv, err := js.KeyValue(ctx, "PINWHEEL_DEPLOYMENTS")
	if err != nil {
		return err
	}
	if s.watch, err = kv.Watch(ctx, rolloutOwner+"."+rolloutWorker); err != nil {
		return err
	}
	s.following.Go(func() {
		for entry := range s.watch.Updates() {
			if entry == nil || entry.Operation() != jetstream.KeyValuePut {
				continue
			}
			var step rolloutStep
			err := json.Unmarshal(entry.Value(), &step.Deployment)
			step.Stored = entry.Created()
			step.from = step.Effective()
			s.mu.Lock()
			s.steps = append(s.steps, step)
			s.faults = append(s.faults, nonNil(err)...)
			s.mu.Unlock()
		}
	})
	return nil
}

// leave ends follow.
func (s *rolloutSheet) leave() {
	if s.watch != nil {
		_ = s.watch.Stop() // closes its channel
	}
	s.following.Wait()
}

func nonNil(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

// await waits for that many further replies.
func (s *rolloutSheet) await(ctx context.Context, n int) error {
	s.mu.Lock()
	want := s.answered + n
	s.mu.Unlock()
	return s.until(ctx, time.Minute, func() bool { return s.answered >= want })
}

// drain waits for the reply of each event that was published.
func (s *rolloutSheet) drain(ctx context.Context, patience time.Duration) error {
	return s.until(ctx, patience, func() bool { return s.answered == len(s.events) })
}

// until waits for something, as long as replies come within the patience.
func (s *rolloutSheet) until(ctx context.Context, patience time.Duration, is func() bool) error {
	last, since := -1, time.Now()
	for {
		s.mu.Lock()
		done, now := is(), s.answered
		lost := len(s.events) - now
		s.mu.Unlock()
		if done {
			return nil
		}
		if now != last {
			last, since = now, time.Now()
		} else if time.Since(since) > patience {
			return fmt.Errorf("lost: %d events have no reply", lost)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// stepTotals are the events of a step that were published and answered in it, in their first run.
type stepTotals struct {
	percent         float64
	keys, ofNew     int // keys with an event; those whose events ran in the new version
	events, wrong   int // events; those that ran in another version than their key has
	expectedPortion float64
}

// during returns the steps between two times, with when each ended.
func (s *rolloutSheet) during(r rolloutResult) (steps []rolloutStep, ends []time.Time) {
	for i, step := range s.steps {
		if step.Stored.Before(r.from) || step.Stored.After(r.to) {
			continue
		}
		end := r.to
		if i+1 < len(s.steps) && s.steps[i+1].from.Before(end) {
			end = s.steps[i+1].from
		}
		steps, ends = append(steps, step), append(ends, end)
	}
	return steps, ends
}

// total counts the events of a step.
func (s *rolloutSheet) total(step rolloutStep, end time.Time) stepTotals {
	candidate := step.Candidate()
	points := workers.Points(candidate.Percent)
	t := stepTotals{percent: candidate.Percent}
	ran, expected := map[string]bool{}, 0
	for i := range s.keys {
		if events.SplitPoint(rolloutOwner, rolloutWorker, s.key(i)) < points {
			expected++
		}
	}
	t.expectedPortion = 100 * float64(expected) / float64(s.keys)
	for id, e := range s.events {
		if e.sent.Before(step.from.Add(switching)) || e.answered.IsZero() || e.answered.After(end) || e.attempt > 1 {
			continue
		}
		t.events++
		key := s.key(id)
		ran[key] = ran[key] || e.version == candidate.Version
		want := step.Base()
		if events.SplitPoint(rolloutOwner, rolloutWorker, key) < points {
			want = candidate.Version
		}
		if e.version != want {
			t.wrong++
		}
	}
	for _, is := range ran {
		t.keys++
		if is {
			t.ofNew++
		}
	}
	return t
}

// movedBack counts the keys of a rollout that ran in its new version, and then in the one before while the rollout went
// on.
func (s *rolloutSheet) movedBack(steps []rolloutStep, ends []time.Time) int {
	is, back := map[string]bool{}, map[string]bool{}
	for i, step := range steps {
		if step.Candidate().Version == "" {
			continue
		}
		for id, e := range s.events {
			if e.sent.Before(step.from.Add(switching)) || e.answered.IsZero() || e.answered.After(ends[i]) || e.attempt > 1 {
				continue
			}
			key := s.key(id)
			switch {
			case e.version == step.Candidate().Version:
				is[key] = true
			case is[key]:
				back[key] = true
			}
		}
	}
	return len(back)
}

// latency is the 99th percentile of the events that were published between two times, in milliseconds.
func (s *rolloutSheet) latency(from, to time.Time) float64 {
	r := report.NewRecorder()
	for _, e := range s.events {
		if !e.sent.Before(from) && e.sent.Before(to) && !e.answered.IsZero() && e.attempt == 1 {
			r.Record(e.answered.Sub(e.sent))
		}
	}
	return r.At(99)
}

// print writes how a rollout went.
func (s *rolloutSheet) print(out io.Writer, r rolloutResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	steps, ends := s.during(r)
	what := "good version"
	if r.bad {
		what = "bad version"
	}
	fmt.Fprintf(out, "%s: the command took %.1f s\n", what, r.took.Seconds())
	for i, step := range steps {
		switch rollout := step.Rollout; {
		case step.Candidate().Version != "":
			t := s.total(step, ends[i])
			fmt.Fprintf(out, "  %5.4g %%   %.1f s, %d of %d keys in the new version (%.1f %%; exact is %.1f %% of all keys), %d of %d events in the wrong one\n",
				t.percent, ends[i].Sub(step.from).Seconds(), t.ofNew, t.keys, 100*float64(t.ofNew)/float64(max(1, t.keys)),
				t.expectedPortion, t.wrong, t.events)
		case rollout != nil:
			fmt.Fprintf(out, "  %s after %.1f s %s\n", rollout.State, step.from.Sub(steps[0].from).Seconds(), rollout.Reason)
		}
	}
	fmt.Fprintf(out, "  keys      %d moved back\n", s.movedBack(steps, ends))
	fmt.Fprintf(out, "  p99       %.1f ms of first runs, %.1f ms in the second before\n", s.latency(r.from, r.to),
		s.latency(r.from.Add(-time.Second), r.from))
	again := 0
	for _, e := range s.events {
		if e.again {
			again++
		}
	}
	fmt.Fprintf(out, "  events    %d published in all, %d answered, %d answered again after a redelivery\n", len(s.events), s.answered, again)
}

// verdict returns an error when a promise of rollouts was broken.
func (s *rolloutSheet) verdict(results []rolloutResult) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := s.faults
	for _, r := range results {
		steps, ends := s.during(r)
		splits := 0
		for i, step := range steps {
			if step.Candidate().Version == "" {
				continue
			}
			splits++
			if t := s.total(step, ends[i]); t.wrong > 0 {
				errs = append(errs, fmt.Errorf("%d of %d events ran in the wrong version in the step %v %%", t.wrong, t.events, t.percent))
			}
		}
		if splits == 0 {
			errs = append(errs, errors.New("no split was seen"))
		}
		if n := s.movedBack(steps, ends); n > 0 {
			errs = append(errs, fmt.Errorf("%d keys moved back", n))
		}
		last := rolloutStep{}
		if len(steps) > 0 {
			last = steps[len(steps)-1]
		}
		if last.Rollout == nil || r.bad != (last.Rollout.State == workers.RolloutRolledBack) {
			errs = append(errs, fmt.Errorf("the rollout did not end as it should: %+v", last.Rollout))
		}
	}
	return errors.Join(errs[:min(len(errs), 2*maxFaults)]...)
}
