package isolates

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/pipe"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// wholeBody is the largest body, in bytes, that is sent in one message with its head. The body must be ready at once.
const wholeBody = 512 << 10

// FirstCredit is how many bytes of a body may be produced before its first chunk is published.
const FirstCredit = 1 << 20

// body is the body of a reply that a run produces in chunks. It is kept here until the end of the turn in which it
// began. Then it goes to a Stream.
type body struct {
	head  *events.Reply
	parts []events.Chunk
	size  int
	ended bool
	sent  bool
	left  bool   // the requester does not wait for the rest
	why   string // why not

	// These are set when no JavaScript makes the body.
	outlet *pipe.Outlet
	begin  func() // begins to move it, when the head was reported
	stop   func() // cancels its source

	upTo   atomic.Int64 // bytes granted so far; any goroutine may add
	untold atomic.Bool  // the thread must still report upTo to JavaScript
}

// grant lets the body grow to upTo bytes in all. At most one message waits for the thread, however often grant is
// called.
func (b *body) grant(t *thread, r *run, upTo int64) {
	if b.outlet != nil {
		b.outlet.Grant(upTo)
		return
	}
	for {
		before := b.upTo.Load()
		if upTo <= before || b.upTo.CompareAndSwap(before, upTo) {
			break
		}
	}
	if b.untold.CompareAndSwap(false, true) {
		r.callRun(t, func(c *v8x.Call) {
			b.untold.Store(false)
			c.Reset(js.OpCredit).Number(float64(r.id)).Number(float64(b.upTo.Load()))
		})
	}
}

// waits reports whether more of the body may come.
func (b *body) waits() bool { return b != nil && !b.ended }

// take adds a chunk to a body that waits.
func (b *body) take(c events.Chunk) {
	b.ended = c.End || c.Failure != nil
	if b.sent {
		b.head.Stream.Push(c)
		return
	}
	b.parts = append(b.parts, c)
	b.size += len(c.Data)
}

// beginBody takes the head of a reply. It is reported when the turn is over.
func (r *run) beginBody(t *thread, head *events.Reply, now time.Time) {
	if r.replied {
		return
	}
	if r.cancelled.Load() {
		t.end(r, lifecycle.End{})
		return
	}
	r.replied = true
	head.Duration = now.Sub(r.start)
	r.body = &body{head: head}
	t.out.bodies = append(t.out.bodies, r)
}

// takeBody takes a piece of the body. Its kind is 0 = more follows, 1 = this is the end, 2 = the body broke off, 3 =
// JavaScript has more than was granted.
func (r *run) takeBody(t *thread, in *v8x.Commands) {
	c := events.Chunk{Data: slices.Clone(in.View())}
	switch in.Int() {
	case 1:
		c.End = true
	case 2:
		message, stack := in.Clip(maxText), in.Clip(maxText)
		c.Failure = events.NewFailure(events.ReasonException, message, r.author(stack))
	case 3:
		c.Waits = true
	}
	r.addToBody(t.pool, c)
}

// addToBody adds a chunk to the body of a run's reply. A failure is written to the output of the worker and counted,
// unless the requester did not wait for it.
func (r *run) addToBody(p *Pool, c events.Chunk) {
	b := r.body
	if !b.waits() {
		return
	}
	if f := c.Failure; f != nil && !b.left {
		r.end.Broken = f
		p.done.broken.inc(string(f.Reason))
		r.logFailure(p.host, "the body of the response broke off", f)
	}
	b.take(c)
}

// startBody reports the head of a run's reply. The head comes with the whole body if that was ready at once, otherwise
// with a Stream.
func (r *run) startBody(t *thread) {
	b := r.body
	if b == nil || b.sent {
		return
	}
	b.sent = true
	if b.ended && b.size <= wholeBody && b.parts[len(b.parts)-1].Failure == nil {
		b.head.Body = make([]byte, 0, b.size)
		for _, c := range b.parts {
			b.head.Body = append(b.head.Body, c.Data...)
		}
	} else {
		b.head.Stream = &events.Stream{
			Grant:  func(upTo int64) { b.grant(t, r, upTo) },
			Cancel: func(why string) { r.abort(t, why) },
			Passes: b.outlet != nil,
		}
		for _, c := range b.parts {
			b.head.Stream.Push(c)
		}
	}
	b.parts = nil
	t.out.reports = append(t.out.reports, lifecycle.Report{Attempt: r.attempt, Reply: b.head})
	if b.begin != nil && !b.ended {
		b.begin()
	}
}

// startBodies calls startBody for all replies that began in the turn.
func (t *thread) startBodies() {
	for _, r := range t.out.bodies {
		r.startBody(t)
	}
	clear(t.out.bodies)
	t.out.bodies = t.out.bodies[:0]
}

// endBody ends a body that its run did not end.
func (r *run) endBody(p *Pool, e lifecycle.End) {
	f := e.Failure
	switch {
	case f == nil && e.Interrupted:
		f = events.Fail(events.ReasonUnavailable, "the run was interrupted")
	case f == nil && r.failure != nil:
		f = r.failure
	case f == nil:
		f = events.Fail(events.ReasonTimeout, "the event is over")
	}
	r.addToBody(p, events.Chunk{Failure: f})
}

// callRun makes a call into a run's JavaScript unless the run is over. Any goroutine may call it.
func (r *run) callRun(t *thread, encode func(*v8x.Call)) {
	r.Later(func() {
		if r.over {
			return
		}
		encode(&t.call)
		t.turn(r, t.call.Bytes(), nil)
	})
}

// abort notifies a run that no requester waits for its reply. Any goroutine may call it.
func (r *run) abort(t *thread, why string) {
	r.callRun(t, func(c *v8x.Call) {
		if b := r.body; b != nil {
			b.left, b.why = true, why
			if b.stop != nil {
				b.stop()
			}
		}
		c.Reset(js.OpAbort).Number(float64(r.id)).String(why)
	})
}

// listenForRequester aborts the run when its requester goes.
func (r *run) listenForRequester(t *thread) {
	if q := r.attempt.Event.Requester; q != nil {
		q.OnGone(func() { r.abort(t, "the requester has gone") })
	}
}

// stopListening undoes listenForRequester and listenForHalt.
func (r *run) stopListening() {
	e := r.attempt.Event
	if e != nil && e.Requester != nil {
		e.Requester.OnGone(nil)
	}
	if e != nil && e.Halt != nil {
		e.Halt.On(nil)
	}
	if h := r.attempt.Halt; h != nil {
		h.On(nil)
	}
}

// listenForHalt ends the run when its event must no longer run: at once if the run waits, otherwise when it next waits.
func (r *run) listenForHalt(t *thread) {
	for _, h := range [...]*events.Signal{r.attempt.Event.Halt, r.attempt.Halt} {
		if h != nil {
			h.On(func() {
				r.Later(func() { t.stop(r, events.ReasonTimeout, "it was told to end") })
			})
		}
	}
}

// cancelGrace is how long a run may go on after its handler was told that somebody cancels the event.
const cancelGrace = 250 * time.Millisecond

// Cancel ends the run of an event, if this pool has one that is of this event only: its handler gets a signal, and a
// moment. Code that runs without a pause gets no signal: it is ended after that moment. Any goroutine may call it.
func (p *Pool) Cancel(e *lifecycle.Delivery) {
	e.Cancel() // first: a turn that begins later looks at it
	for i := range p.threads {
		t := p.threads[i].Load()
		t.watch.cancel(e, time.Now().Add(cancelGrace))
		t.post(func(t *thread) { cancelOn(e, t) })
	}
}

// cancelOn ends a thread's run of an event.
func cancelOn(e *lifecycle.Delivery, t *thread) {
	for i, a := range t.waiting {
		if a.Event == e && t.out.refuseCancelled(a) {
			t.waiting = slices.Delete(t.waiting, i, i+1)
			return
		}
	}
	for r := range t.running {
		if r.cancels(e) {
			r.Later(func() { r.cancel(t) })
			return
		}
	}
}

// refuseCancelled ends an attempt that has not begun if its event is cancelled.
func (o *outbox) refuseCancelled(a *lifecycle.Attempt) bool {
	if !a.Cancelled() {
		return false
	}
	o.reports = append(o.reports, lifecycle.Report{Attempt: a, End: &lifecycle.End{Failure: events.Cancelled()}})
	return true
}

// cancels reports whether r is of that event only.
func (r *run) cancels(e *lifecycle.Delivery) bool {
	return r.attempt.Event == e && e != nil && len(r.attempt.Batch) < 2 && !r.betweenEvents
}

// cancel gives the handler its signal, and then a moment.
func (r *run) cancel(t *thread) {
	if r.over || r.signalled {
		return
	}
	r.cancelled.Store(true)
	r.signalled = true
	if end := time.Now().Add(cancelGrace); end.Before(r.wall) {
		r.wall = end
		if r.deadline != nil {
			t.timers.Clear(r.deadline)
			r.deadline = t.timers.Set(r.wall, r, noTimer)
		}
	}
	if r.begun {
		t.call.Reset(js.OpCancel).Number(float64(r.id)).String(events.CancelledText)
		t.turn(r, t.call.Bytes(), nil)
	}
}

// cancel ends the turn that a run of the event is in, if it is in one, at a moment at the latest. Any goroutine may
// call it.
func (w *watch) cancel(e *lifecycle.Delivery, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isolate != nil && w.run != nil && w.run.cancels(e) && !w.run.cancelled.Load() {
		w.endAt(at)
	}
}

// endAt has the turn end at a moment at the latest, because the event is cancelled. The caller holds mu.
func (w *watch) endAt(at time.Time) {
	w.run.cancelled.Store(true)
	if at.Before(w.deadline) {
		w.deadline = at
	}
}

// without returns headers without those of a name in lower case. It changes flat.
func without(flat []string, name string) []string {
	kept := flat[:0]
	for i := 0; i+1 < len(flat); i += 2 {
		if flat[i] != name {
			kept = append(kept, flat[i], flat[i+1])
		}
	}
	return kept
}

// pipeBody has a source make the body of the reply.
func (r *run) pipeBody(t *thread, source float64) {
	b := r.body
	if !b.waits() || b.sent {
		return
	}
	b.outlet = pipe.NewOutlet(int64(firstGrant(r.attempt.Event)),
		func(c events.Chunk) func([]byte) error { return b.head.Stream.Offer(c) }, func(err error) {
			r.callRun(t, func(c *v8x.Call) {
				switch {
				case err == nil:
					r.addToBody(t.pool, events.Chunk{End: true})
				case b.left:
					r.addToBody(t.pool, events.Chunk{Failure: events.Fail(events.ReasonException, "AbortError: %s", b.why)})
				default:
					r.addToBody(t.pool, events.Chunk{Failure: events.Fail(events.ReasonException, "the source of the body failed: %v",
						err)})
				}
				c.Reset(js.OpPiped).Number(float64(r.id))
			})
		})
	coding := egress.CodingOf(b.head.Headers)
	if coding == "" && r.calls.Coded(source) { // its length is that of the coded body
		b.head.Headers = without(b.head.Headers, "content-length")
	}
	b.begin = func() { b.stop = r.calls.Pipe(source, b.outlet, coding) }
}
