package isolates

import (
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// begin starts an attempt, or gives it to the thread where it has to run. It returns false, with nothing done, when there
// is no room for it now.
func (t *thread) begin(a *events.Attempt) bool {
	mode := a.Worker.Mode.OrDefault()
	if a.Own {
		mode = events.Oneshot
	}
	if a.Event == nil {
		mode = events.Pinned // a Checker only loads it
	}
	if mode == events.Persistent && t.handOver(a) {
		return true
	}
	now := time.Now()
	t.began = now
	limits := t.pool.limits(a.Worker)
	t.lastID++
	r := &run{attempt: a, id: t.lastID, start: now, limits: limits, wall: now.Add(limits.Wall.Duration()), cpuLeft: limits.CPU.Duration()}
	t.running[r] = struct{}{}
	t.beginning = r
	t.collecting = 0
	t.watch.blame(r)
	g, err := t.acquire(a.Worker, mode)
	t.watch.blame(nil)
	t.beginning = nil
	if t.collecting > 0 { // no run's, and its owner's
		t.pool.source.Charge(a.Worker.Owner, t.collecting)
	}
	if g == nil && err == nil {
		delete(t.running, r)
		return false
	}
	if err != nil {
		t.fail(r, events.ReasonMemory, err.Error(), "")
		return true
	}
	r.guest = g
	t.enlist(g, r, now)
	r.warm = g.loaded
	if !g.loaded {
		r.cpu += max(0, t.watch.spent(now)-t.collecting)
		t.load(r)
		return true
	}
	t.dispatch(r)
	return true
}

// load evaluates the module of a cold context. Its time is not the handler's: it has limits of its own.
func (t *thread) load(r *run) {
	r.wall, r.cpuLeft = r.start.Add(loadWall), loadCPU
	r.guest.loader = r
	t.module(r, func() (v8x.ModuleState, v8x.Result) { return t.compile(r.guest) })
}

// module takes a step of the module's evaluation and sees how far it got.
func (t *thread) module(r *run, take func() (v8x.ModuleState, v8x.Result)) {
	g := r.guest
	t.enter(r, stepModule, func() (result v8x.Result) {
		g.state, result = take()
		return result
	})
	t.follow(r, stepModule)
}

// follow is what follows a turn.
func (t *thread) follow(r *run, step step) {
	g := r.guest
	if r.over || g.closed {
		return
	}
	switch {
	case step == stepEnded:
	case step == stepModule:
		t.evaluated(r)
	case !g.loaded:
		t.module(g.loader, g.ctx.PollModule)
	case !r.ground:
		t.settleDown(r, "the handler can never finish: nothing it waits for is pending")
	}
}

// evaluated sees how far the module has got.
func (t *thread) evaluated(r *run) {
	switch r.guest.state {
	case v8x.Evaluated:
		now := time.Now()
		r.guest.loaded = true
		t.look(r.guest.isolate, r.guest, now, 0)
		t.freed = true // others may wait for it
		t.alarms.clear(r.deadline)
		r.deadline = nil
		r.wall, r.cpuLeft = now.Add(r.limits.Wall.Duration()), r.limits.CPU.Duration()
		t.dispatch(r)
	case v8x.Pending:
		t.settleDown(r, "a top-level await of the module can never finish: nothing it waits for is pending")
	default:
		t.fail(r, events.ReasonException, "the module failed to load", "")
	}
}

func compileMessage(err error) string {
	if err == nil {
		return "the module does not compile"
	}
	return strings.Replace(err.Error(), "Uncaught ", "", 1)
}

// dispatch calls the handler.
func (t *thread) dispatch(r *run) {
	e := r.attempt.Event
	if e == nil { // only loaded, for a Checker, which wants to know the handlers
		r.attempt.Slot = r.guest.handlers
		t.end(r, events.End{Started: true})
		return
	}
	r.begun = true
	r.guest.uses++
	if r.guest.life != nil {
		t.countRequest(r.guest)
	}
	t.heed(r)
	c := &t.call
	var body []byte
	switch e.Kind {
	case events.Fetch:
		t.listen(r)
		c.Reset(opFetchEvent).Number(float64(r.id)).String(e.Method).String(e.URL)
		if len(e.HTTPHeaders) > 0 {
			c.Strings(e.HTTPHeaders)
		} else {
			c.Null()
		}
		if len(e.Body) > 0 {
			c.Content()
			body = e.Body
		} else {
			c.Null()
		}
		if e.Requester != nil || e.Parts != nil {
			c.Number(firstGrant(e)).Bool(e.Parts != nil)
		}
	case events.Task, events.Scheduled:
		op := opTaskEvent
		if e.Kind == events.Scheduled {
			op = opScheduledEvent
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

func userHeaders(e *events.Event) []string {
	var list []string
	e.UserHeaders(func(name, value string) { list = append(list, name, value) })
	return list
}

// turn calls the entry function on behalf of a run, and sees to what that left.
func (t *thread) turn(r *run, call, body []byte) {
	if r.over {
		return
	}
	g := r.guest
	if g.life != nil {
		t.pending = pending{r, call, body}
		t.freshen(g, r)
		t.pending = pending{}
		if g.closed || g.life.phase == doomed {
			return
		}
	}
	t.enter(r, stepCall, func() v8x.Result { return g.ctx.Call(call, body) })
	t.follow(r, stepCall)
}

// settleDown is what follows a turn that did not end its run: it waits, if there is anything to wait for.
func (t *thread) settleDown(r *run, why string) {
	if !r.mayGoOn() {
		t.stop(r, events.ReasonTimeout, why)
		return
	}
	if r.deadline == nil {
		r.deadline = t.alarms.set(r.wall, r, noTimer)
	}
}

// enter goes into V8 under the watchdog's eyes. It returns only if the turn was not away: what follows a turn is in follow.
func (t *thread) enter(r *run, step step, f func() v8x.Result) {
	w := t.watch
	now := time.Now()
	r.guest.isolate.tellOthers(r.guest)
	w.begin(r, now, t.farewells)
	result := f()
	end := time.Now()
	cpu, killed := w.end(end)
	if w.away {
		t.comeBack(w, left{r, step, now, end, result, cpu, killed})
	}
	if t.lost.Load() {
		t.abandon()
	}
	t.leave(left{r, step, now, end, result, cpu, killed})
}

// leave carries out the commands that came out of a turn, and ends the run if a limit was passed.
func (t *thread) leave(x left) {
	r, iso, result := x.run, x.run.guest.isolate, x.result
	r.cpu += x.cpu
	r.cpuLeft -= x.cpu
	t.turned += x.cpu
	if iso.unlooked += x.end.Sub(x.start); iso.unlooked > lookAfter {
		iso.unlooked = 0
		t.look(iso, r.guest, x.end, 0)
		t.grown = true
	}
	flags := iso.v8.Flags()
	if flags&v8x.HeapLimit != 0 {
		t.look(iso, r.guest, x.end, 0)
	}
	if !r.over {
		t.aside = 0
		t.obey(r, result.Out, x.end)
		t.charge(r, t.aside)
	}
	if !iso.closed {
		iso.v8.Forget(result)
	}
	t.startBodies()
	switch {
	case x.killed == stopped:
		t.interrupt(iso)
	case flags&v8x.HeapLimit != 0 && r.crowdedOut():
		t.end(r, events.End{Interrupted: true, Started: true}) // while its module loads, too: it shall not run so again and again
		t.interrupt(iso)
	case flags&v8x.HeapLimit != 0:
		t.kill(r, r.memoryFailure())
	case x.killed == events.ReasonCPU:
		t.kill(r, r.cpuFailure())
	case x.killed == events.ReasonTimeout:
		t.kill(r, r.wallFailure())
	case result.Terminated:
		t.kill(r, events.Fail(events.ReasonMemory, "terminated by V8"))
	case result.Err != nil && !r.over && x.step == stepModule && r.guest.state == v8x.CompileError: // the module's fault, not the runtime's
		t.fail(r, events.ReasonException, compileMessage(result.Err), "")
	case result.Err != nil && !r.over:
		t.fail(r, events.ReasonException, result.Err.Error(), "")
	}
	if r.ground {
		t.between(r, x.cpu)
	} else {
		t.account(r)
	}
}

// charge makes CPU time that a run used outside of V8 part of its own.
func (t *thread) charge(r *run, cpu time.Duration) {
	if cpu == 0 {
		return
	}
	r.cpu += cpu
	t.turned += cpu
	r.end.CPU += cpu // which is not told before the next flush
	if r.ground {
		t.between(r, cpu)
	}
	if r.cpuLeft -= cpu; r.cpuLeft < 0 && !r.over {
		t.stop(r, events.ReasonCPU, r.cpuFailure().Message)
	}
}

func (r *run) memoryFailure() *events.Failure {
	return events.Fail(events.ReasonMemory, "heap limit of %d MB", r.limits.HeapMB)
}

func (r *run) cpuFailure() *events.Failure {
	limit := loadCPU
	if r.begun {
		limit = r.limits.CPU.Duration()
	}
	return events.Fail(events.ReasonCPU, "CPU time limit of %s", limit)
}

func (r *run) wallFailure() *events.Failure {
	limit := loadWall
	if r.begun {
		limit = r.limits.Wall.Duration()
	}
	return events.Fail(events.ReasonTimeout, "wall-clock limit of %s", limit)
}
