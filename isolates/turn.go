package isolates

import (
	"runtime"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
	"github.com/pinwheel-run/pinwheel/isolates/holdings"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// begin starts an attempt, or gives it to the thread where it must run. It returns false, with nothing done, if there
// is no room for it now.
func (t *thread) begin(a *lifecycle.Attempt) bool {
	if t.out.refuseCancelled(a) {
		return true
	}
	mode := a.Worker.Mode.OrDefault()
	if a.Own {
		mode = workers.Oneshot
	}
	if a.Event == nil {
		mode = workers.Pinned // a Checker only loads it
	}
	if mode == workers.Persistent && t.persistents.handOver(a) {
		return true
	}
	now := time.Now()
	t.began = now
	t.lastID++
	r := t.newRun(a, now)
	r.id = t.lastID
	t.running[r] = struct{}{}
	t.beginning = r
	t.heaps.collecting = 0
	t.watch.attribute(r)
	jc, err := t.placer.acquire(a.Worker, mode)
	t.watch.attribute(nil)
	t.beginning = nil
	if t.heaps.collecting > 0 { // charged to the owner, not to a run
		t.pool.source.Charge(a.Worker.Owner, t.heaps.collecting)
	}
	if jc == nil && err == nil && waitsForItself(a, t.running) {
		r.fail(events.ReasonUnavailable, "the owner has no room for one more isolate: all of its runs wait for calls", "")
		return true
	}
	if jc == nil && err == nil {
		delete(t.running, r)
		return false
	}
	if err != nil {
		r.fail(reasonOf(err), err.Error(), "")
		return true
	}
	r.context = jc
	t.heaps.addRun(jc, r, now)
	r.end.Warm = jc.loaded
	if !jc.loaded {
		r.cpu += max(0, t.watch.cpuSince(now)-t.heaps.collecting)
		t.load(r)
		return true
	}
	t.dispatch(r)
	return true
}

// load evaluates the module of a cold context. The time does not count as the handler's: it has its own limits.
func (t *thread) load(r *run) {
	r.wall, r.cpuLeft = r.start.Add(t.pool.load.wall), t.pool.load.cpu
	r.context.loader = r
	t.module(r, func() (v8x.ModuleState, v8x.Result) { return r.context.compile(t.pool.code) })
}

// module takes a step of the module's evaluation and checks the result.
func (t *thread) module(r *run, take func() (v8x.ModuleState, v8x.Result)) {
	jc := r.context
	t.enter(r, stepModule, func() (result v8x.Result) {
		jc.state, result = take()
		return result
	})
	t.follow(r, stepModule)
}

// follow continues after a turn.
func (t *thread) follow(r *run, step step) {
	jc := r.context
	if r.over || jc.closed {
		return
	}
	switch {
	case step == stepEnded:
	case step == stepModule:
		t.evaluated(r)
	case !jc.loaded:
		t.module(jc.loader, jc.v8.PollModule)
	case !r.betweenEvents:
		t.waitOrStop(r, "the handler can never finish: nothing it waits for is pending")
	}
}

// evaluated continues according to the state of the module.
func (t *thread) evaluated(r *run) {
	switch r.context.state {
	case v8x.Evaluated:
		now := time.Now()
		r.context.loaded = true
		t.heaps.counters.measure(r.context.isolate, now, 0)
		t.heaps.freed = true // attempts may wait for this context
		t.timers.Clear(r.deadline)
		r.deadline = nil
		r.wall, r.cpuLeft = now.Add(r.limits.Wall.Duration()), r.limits.CPU.Duration()
		t.dispatch(r)
	case v8x.Pending:
		t.waitOrStop(r, "a top-level await of the module can never finish: nothing it waits for is pending")
	default:
		r.fail(events.ReasonException, "the module failed to load", "")
	}
}

func compileMessage(err error) string {
	if err == nil {
		return "the module does not compile"
	}
	return strings.Replace(strings.TrimPrefix(err.Error(), js.BundlePrefix), "Uncaught ", "", 1)
}

// dispatch calls the handler.
func (t *thread) dispatch(r *run) {
	e := r.attempt.Event
	if e == nil { // only loaded, for a Checker that asks for the handlers
		r.attempt.Slot = r.context.handlers
		t.end(r, lifecycle.End{Started: true})
		return
	}
	if h := r.attempt.Halt; h != nil && h.Fired() { // it lost its right to run before it began
		t.end(r, lifecycle.End{Interrupted: true})
		return
	}
	r.begun = true
	r.context.uses++
	if r.context.life != nil {
		t.persistents.countRequest(r.context)
	}
	r.listenForHalt(t)
	c := &t.call
	var body []byte
	switch e.Kind {
	case events.Fetch:
		r.listenForRequester(t)
		body = encodeFetch(c, r)
	case events.Task, events.Scheduled:
		if r.attempt.Batch != nil {
			body = encodeBatch(c, r)
			break
		}
		op := js.OpTaskEvent
		if e.Kind == events.Scheduled {
			op = js.OpScheduledEvent
		}
		c.Reset(op).Number(float64(r.id)).String(e.ID).Number(float64(r.attempt.Number)).Strings(userHeaders(e)).Content()
		body = e.Body
		if e.Kind == events.Scheduled {
			c.Number(float64(e.ScheduledTime)).String(e.Cron)
		}
		if n := e.Replays(); n > 0 {
			c.Number(float64(n))
		}
	}
	t.turn(r, c.Bytes(), body)
}

// turn calls the entry function on behalf of a run, and handles the result. It does not return if the turn goes away.
func (t *thread) turn(r *run, call, body []byte) {
	if r.over {
		return
	}
	jc := r.context
	if jc.life != nil {
		t.pending = pending{r, call, body}
		if ended := t.persistents.prepareTurn(jc, r); ended != nil {
			t.enter(jc.life.betweenEvents, stepEnded, func() v8x.Result { return jc.v8.Call(ended, nil) })
		}
		t.pending = pending{}
		if jc.closed || jc.life.phase == invalid {
			return
		}
	}
	t.enter(r, stepCall, func() v8x.Result { return jc.v8.Call(call, body) })
	t.follow(r, stepCall)
}

// waitOrStop continues after a turn that did not end its run. The run waits if anything is pending.
func (t *thread) waitOrStop(r *run, why string) {
	if !r.canEnd() {
		t.stop(r, events.ReasonTimeout, why)
		return
	}
	if r.deadline == nil {
		r.deadline = t.timers.Set(r.wall, r, noTimer)
	}
}

// enter calls V8 while the watchdog watches. It returns only if the turn did not go away. follow has the code after a
// turn.
func (t *thread) enter(r *run, step step, f func() v8x.Result) {
	w := t.watch
	t.heaps.counters.measureBefore(r.context)
	now := time.Now()
	r.context.isolate.setOthers(r.context)
	r.context.isolate.latest = r.context
	w.begin(r, now, t.persistents.terminatesNow)
	result := f()
	end := time.Now()
	cpu, killed := w.end(end)
	if w.away {
		t.handBack(w, endedTurn{r, step, now, end, result, cpu, killed})
	}
	if t.lost.Load() {
		t.abandon()
	}
	t.finishTurn(endedTurn{r, step, now, end, result, cpu, killed})
}

// finishTurn carries out the commands of a turn, and ends the run if it passed a limit.
func (t *thread) finishTurn(x endedTurn) {
	r, iso, result := x.run, x.run.context.isolate, x.result
	r.cpu += x.cpu
	r.cpuLeft -= x.cpu
	t.turned += x.cpu
	if iso.unmeasured += x.end.Sub(x.start); iso.unmeasured > measureAfter {
		t.heaps.counters.measure(iso, x.end, 0)
		t.heaps.grown = true
	}
	flags := iso.v8.Flags()
	if flags&v8x.HeapLimit != 0 {
		t.heaps.counters.measure(iso, x.end, 0)
	}
	if !r.over {
		t.aside = 0
		t.apply(r, result.Out, x.end)
		r.charge(t.aside)
	}
	if !iso.closed {
		iso.v8.Forget(result)
	}
	t.startBodies()
	switch {
	case x.killed == stopped:
		t.interrupt(iso)
	case flags&v8x.CodeLimit != 0:
		t.kill(r, r.codeFailure())
	case flags&v8x.HeapLimit != 0 && r.othersTookHeap():
		// Started is also set while the module loads, so that the event does not run again without end.
		t.end(r, lifecycle.End{Interrupted: true, Started: true})
		t.interrupt(iso)
	case flags&v8x.HeapLimit != 0:
		t.kill(r, r.memoryFailure())
	case x.killed == events.ReasonCPU:
		cut(t, r, r.cpuFailure())
	case x.killed == events.ReasonTimeout:
		cut(t, r, r.wallFailure())
	case result.Terminated:
		t.kill(r, events.Fail(events.ReasonMemory, "terminated by V8"))
	// The module caused this, not the runtime.
	case result.Err != nil && !r.over && x.step == stepModule && r.context.state == v8x.CompileError:
		r.fail(events.ReasonException, compileMessage(result.Err), "")
	case result.Err != nil && !r.over:
		r.fail(events.ReasonException, result.Err.Error(), "")
	}
	if r.betweenEvents {
		t.between(r, x.cpu)
	} else {
		r.account()
	}
}

// charge adds CPU time that a run used outside V8 to the run's CPU time.
func (r *run) charge(cpu time.Duration) {
	t := r.thread
	if cpu == 0 {
		return
	}
	r.cpu += cpu
	t.turned += cpu
	r.end.CPU += cpu // reported at the next flush
	if r.betweenEvents {
		t.between(r, cpu)
	}
	if r.cpuLeft -= cpu; r.cpuLeft < 0 {
		t.stop(r, events.ReasonCPU, r.cpuFailure().Message)
	}
}

// waitsForItself reports whether a call finds no room, and all runs of its owner among running, those of the thread,
// wait for calls too: then none of them makes room.
func waitsForItself(a *lifecycle.Attempt, running map[*run]struct{}) bool {
	if a.Event == nil || a.Event.Service == nil {
		return false
	}
	for r := range running {
		if r.attempt.Worker.Owner == a.Worker.Owner && !r.calls.WaitsForService() && r.attempt != a {
			return false
		}
	}
	return true
}

// reasonOf is the reason of an event for which no context could be made. Missing secrets are like an error at the
// beginning of the module: the event runs again later, and is kept when that does not help.
func reasonOf(err error) events.Reason {
	if bindings.Lacks(err) {
		return events.ReasonException
	}
	return events.ReasonMemory
}

// abandon ends a runaway thread that came back. Another thread takes its place, reads its state and reports its
// attempts. Only its isolates are left to free.
func (t *thread) abandon() {
	t.pool.losses.runaways.remove(t.watch)
	<-t.replaced
	t.pool.memory.live.Add(int64(t.heaps.count)) // Pool.replace subtracted them
	t.pool.memory.lost.Add(-t.heaps.counters.charged.Load())
	t.heaps.dropAll()
	t.closeInbox()
	t.watch.slot.Free()
	t.pool.losses.back.Add(1)
	runtime.Goexit()
}

// handBack returns a turn that was away to the thread, and ends the OS thread that carried it.
func (t *thread) handBack(w *watch, x endedTurn) {
	if w.lost.Load() {
		t.pool.losses.runaways.remove(w)
		t.pool.losses.back.Add(1)
	}
	v8x.ForgetThread()
	w.slot.Free()
	if !t.inbox.AddReturned(returnedTurn{x, w.lost.Load()}) {
		t.pool.free(x.run.context.isolate)
	}
	runtime.Goexit()
}

// newRun makes the run of an attempt. Its limits begin now.
func (t *thread) newRun(a *lifecycle.Attempt, now time.Time) *run {
	limits := t.pool.limits(a.Worker)
	r := &run{
		thread:  t,
		attempt: a,
		holder:  holdings.Holder{Tenant: t.pool.policies.Tenant(a.Worker.Owner)},
		start:   now,
		limits:  limits,
		wall:    now.Add(limits.Wall.Duration()),
		cpuLeft: limits.CPU.Duration(),
	}
	r.calls.Init(caller{r}, &t.pool.calls)
	return r
}
