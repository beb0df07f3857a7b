package isolates

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/js"
)

// arena is a bench in which events of the owner "thread-N" run on thread N.
type arena struct{ *bench }

func newArena(t *testing.T) arena {
	t.Helper()
	a := arena{&bench{t: t, seen: map[*lifecycle.Attempt]*outcome{}}}
	cfg := DefaultConfig(2)
	cfg.MaxIsolates = 8
	a.pool = newPool(t, cfg, a, a)
	require.NoError(t, a.pool.Open())
	for i := range a.pool.threads {
		_, err := a.check(good("before"), i)
		require.NoError(t, err)
	}
	return a
}

func (a arena) Next(thread, free int) []*lifecycle.Attempt {
	a.mu.Lock()
	defer a.mu.Unlock()
	var batch, rest []*lifecycle.Attempt
	for _, x := range a.next {
		pin, pinned := strings.CutPrefix(x.Event.Owner, "thread-")
		if len(batch) < free && (!pinned || pin == strconv.Itoa(thread)) {
			batch = append(batch, x)
		} else {
			rest = append(rest, x)
		}
	}
	a.next = rest
	return batch
}

// forgetOutcomes drops ended outcomes, so that replies do not count as the pool's memory.
func (a arena) forgetOutcomes() {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.seen, func(_ *lifecycle.Attempt, o *outcome) bool { return o.end != nil })
	a.logs, a.sent = nil, nil
}

func good(owner string) *workers.Worker {
	w := worker("good", `export default { async fetch(r) { const x = await r.json(); await new Promise(f => setTimeout(f, 1)); return Response.json({ n: x.n + 1 }) } }`)
	w.Owner = owner
	return w
}

// check runs a good event on a thread, and repeats it if its thread was lost. It returns how long that took.
func (a arena) check(w *workers.Worker, thread int) (time.Duration, error) {
	start := time.Now()
	for {
		e := fetch("POST", "http://good.test/", `{"n":1}`)
		e.Owner = fmt.Sprintf("thread-%d", thread)
		o := a.start(w, e)
		select {
		case <-o.ended:
		case <-time.After(patience):
			return 0, fmt.Errorf("an event of %s does not end", w.Owner)
		}
		switch {
		case o.end.Interrupted:
			continue
		case o.end.Failure != nil:
			return 0, fmt.Errorf("an event of %s failed: %w", w.Owner, o.end.Failure)
		case string(o.reply.Body) != `{"n":2}`:
			return 0, fmt.Errorf("an event of %s answered %q", w.Owner, o.reply.Body)
		}
		return time.Since(start), nil
	}
}

// delay is how long a good event took, and for how long of that time a thread on which it ran or waited was runnable
// while the machine ran something else.
type delay struct{ took, waited time.Duration }

func (d delay) own() time.Duration { return d.took - d.waited }

// measure runs check and measures the delay.
func (a arena) measure(w *workers.Worker, thread int) (delay, error) {
	tid := a.pool.threads[thread].Load().watch.pinned()
	before := waited(tid)
	took, err := a.check(w, thread)
	d := delay{took, waited(tid) - before}
	if now := a.pool.threads[thread].Load().watch.pinned(); now != tid { // replaced meanwhile
		d.waited += waited(now)
	}
	return d, err
}

// waited returns for how long a thread has waited for a processor.
func waited(tid int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/schedstat", tid))
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[1], 10, 64)
	return time.Duration(n)
}

// watchNeighbours runs good events of another owner on every thread, one after the other, until stop is called. stop
// returns the delay of the event that was delayed most.
func (a arena) watchNeighbours() (stop func() (delay, error)) {
	worst := make([]delay, len(a.pool.threads))
	failed := make([]error, len(worst))
	done := make(chan struct{})
	var running sync.WaitGroup
	for i := range worst {
		running.Go(func() {
			w := good("neighbour")
			pace := time.NewTicker(3 * time.Millisecond)
			defer pace.Stop()
			for failed[i] == nil {
				var d delay
				if d, failed[i] = a.measure(w, i); d.own() > worst[i].own() {
					worst[i] = d
				}
				select {
				case <-done:
					return
				case <-pace.C:
				}
			}
		})
	}
	return func() (delay, error) {
		close(done)
		running.Wait()
		i := slices.IndexFunc(failed, func(err error) bool { return err != nil })
		if i >= 0 {
			return delay{}, failed[i]
		}
		return slices.MaxFunc(worst, func(x, y delay) int { return cmp.Compare(x.own(), y.own()) }), nil
	}
}

// ordeal is the result of one script. A child process reports it as JSON.
type ordeal struct {
	Outcomes        []string
	EndedBy         string        // the limit that ended the last event, for people
	Messages        []string      // of the failures
	Took, Limit     time.Duration // of the script; CPU time that it may take
	Neighbour       time.Duration // time of the good event that was delayed most beside it
	Waited          time.Duration // part of Neighbour spent waiting for a processor that others had
	Parked, Strayed int           // threads
	Log             []string      // of the worker
}

// suffer runs a script beside its neighbours, and good events after it.
func (a arena) suffer(s *script) (r ordeal, err error) {
	parked, strayed := a.pool.losses.parked.Load(), a.pool.losses.ranAway.Load()
	stop := a.watchNeighbours()
	start := time.Now()
	list := make([]*workers.Worker, s.workers)
	for i := range list {
		list[i] = s.worker()
		list[i].Name = fmt.Sprint("w", i)
		a.pool.SetPolicy(list[i].Owner, workers.Policy{WASM: strings.HasPrefix(s.name, "wasm/")})
	}
	if r.Limit = hostileCPU; s.load {
		r.Limit = loadCPU
	}
	begun := make([]*outcome, s.workers)
	for n := range s.events * s.workers {
		i := n % s.workers
		if i == 0 {
			for i, w := range list {
				begun[i] = a.start(w, s.event())
			}
		}
		o, err := a.outcome(begun[i], list[i], s)
		if err != nil {
			return r, err
		}
		r.Outcomes = append(r.Outcomes, outcomeOf(s, o))
		r.EndedBy = limitOf(s, o)
		if f := o.end.Failure; f != nil {
			if strings.Contains(f.Message+f.Stack, js.Prefix) {
				return r, fmt.Errorf("the failure shows the runtime: %s\n%s", f.Message, f.Stack)
			}
			r.Messages = append(r.Messages, fmt.Sprintf("%.200s", f.Message))
		}
	}
	r.Took = time.Since(start)
	worst, err := stop()
	if err != nil {
		return r, err
	}
	r.Neighbour, r.Waited = worst.took, worst.waited
	for i := range a.pool.threads {
		if _, err := a.check(good("after"), i); err != nil {
			return r, err
		}
	}
	for _, line := range a.lines() {
		r.Log = append(r.Log, fmt.Sprintf("%.100s", line))
	}
	r.Log = r.Log[max(0, len(r.Log)-10):]
	r.Parked, r.Strayed = int(a.pool.losses.parked.Load()-parked), int(a.pool.losses.ranAway.Load()-strayed)
	return r, nil
}

// outcome waits for the end of an event. An event that was interrupted by others in its isolate runs again, as with
// dispatch: finally in its own isolate.
func (a arena) outcome(o *outcome, w *workers.Worker, s *script) (*outcome, error) {
	for range 3 {
		select {
		case <-o.ended:
		case <-time.After(patience):
			return nil, fmt.Errorf("it does not end")
		}
		if !o.end.Interrupted || s.workers == 1 {
			break
		}
		o = a.startIn(w, s.event(), true)
	}
	return o, nil
}

// outcomeOf describes in a word how an attempt ended.
func outcomeOf(s *script, o *outcome) string {
	switch {
	case o.end.Interrupted:
		return "interrupted"
	case o.end.Failure != nil:
		return string(o.end.Failure.Reason)
	case o.reply == nil:
		return "no reply"
	case s.kind == events.Fetch && string(o.reply.Body) != "ok":
		return fmt.Sprintf("reply %d %.200q", o.reply.Status, o.reply.Body)
	}
	return "ok"
}

// late returns how much later a good event was than the limit of the script beside it allows, without the time that the
// machine gave to other programs.
func (r *ordeal) late() time.Duration { return r.Neighbour - r.Waited - r.Limit }

// memory returns the memory of the process in RAM, in bytes.
func memory() int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.Atoi(strings.Fields(string(text))[1])
	return pages * os.Getpagesize()
}
