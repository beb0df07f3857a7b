package isolates

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/pipe"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// call is an operation outside the isolate that a run requested: a subrequest or a send. Its answer is posted to the
// thread.
type call struct {
	id     float64
	cancel context.CancelFunc
	start  func()         // starts a subrequest that is queued
	span   lifecycle.Span // of a subrequest; nil = none is kept
	gone   func()         // called when the run ends before the call of a service; nil = nothing is to be done

	// These fields are a subrequest's. Only the thread uses them, except for the channels.
	paced   bool       // its response comes only as fast as its reader takes it
	active  bool       // it is under way
	stalled bool       // its response is not read: the rest of it waits
	asked   bool       // JavaScript reads its response
	first   []byte     // of its response, while nothing has asked for it
	unread  int        // bytes given since JavaScript asked for more
	pieces  chan piece // capacity 1; of the request's body
	// capacity 1; another chunk may come. true = the thread has not taken the last one: it goes to the sink of tap
	taken chan bool
	tap   pipe.Tap      // where its response goes
	ended func(*thread) // called when the exchange is over; nil = nothing is to be done
	grown int           // bytes held for its chunks, besides callBytes; for the exchange's goroutine
	whole bool          // the thread learns of the end of the exchange with its response; for the exchange's goroutine
}

// register makes a call of r.
func (r *run) register(id float64) *call {
	if r.calls == nil {
		r.calls = map[float64]*call{}
	}
	c := &call{id: id}
	r.calls[id] = c
	return c
}

// unregister removes a call. An answer to it is ignored.
func (r *run) unregister(c *call) {
	if r.calls[c.id] != c {
		return
	}
	delete(r.calls, c.id)
	if c.stalled {
		c.stalled = false
		r.stalled--
	}
}

// answer brings the answer to call c into the run's JavaScript. last says that nothing follows. An answer that comes
// too late is ignored. Any goroutine may call it.
func (t *thread) answer(r *run, c *call, last bool, encode func(*v8x.Call) []byte) {
	t.postTo(r, func(t *thread) { c.give(t, r, last, encode) })
}

// give is answer on the thread itself. Like each turn it does not return if the turn goes away: what must follow is
// deferred, or queued before.
func (c *call) give(t *thread, r *run, last bool, encode func(*v8x.Call) []byte) {
	if r.over || r.calls[c.id] != c {
		return
	}
	if last {
		r.unregister(c)
	}
	body := encode(&t.call)
	t.turn(r, t.call.Bytes(), body)
}

const (
	maxRequestHead = 256 << 10 // bytes of the URL and the headers of a subrequest
	maxInline      = 16 << 10  // bytes of a body that comes with its request; fetch/upload.js

	// What a subrequest counts as among the bytes that its run holds. queuedBytes is added to the bytes of the request
	// itself. callBytes is added while the subrequest is under way: for data that is read and written at once, and for
	// what the server may have sent ahead.
	queuedBytes = 2 << 10
	callBytes   = 320 << 10 // uploadPiece, chunkBytes, egress.MaxResponseHead, streamBuffer
)

// fetches are the subrequests of a run.
type fetches struct {
	made   int     // so far
	active int     // under way
	queued []*call // wait until one of those ends
}

// begin starts a subrequest, or queues it behind those under way.
func (f *fetches) begin(t *thread, r *run, in *v8x.Commands) {
	size := in.Left()
	c := r.register(in.Number())
	if size > maxRequestHead+maxInline {
		t.answer(r, c, true, fetchFailed(c, fmt.Errorf("the URL and the headers of the request have %d bytes: at most %d", size, maxRequestHead)))
		return
	}
	q := egress.Request{Method: in.Text(), URL: in.Text(), Headers: in.Strings(), Body: slices.Clone(in.View())}
	q.Redirect, q.Length = in.Text(), in.Int()
	if again := in.Bool(); !again { // following a redirect is not a new subrequest
		f.made++
	}
	by := workers.Binding{Kind: workers.BindingKind(in.Text()), Name: in.Text()} // without a kind: a server
	if limit := r.limits.Subrequests; f.made > limit {
		t.answer(r, c, true, fetchFailed(c, fmt.Errorf("too many subrequests: at most %d per event", limit)))
		return
	}
	size += queuedBytes
	if err := t.pool.hold(r, size); err != nil {
		t.answer(r, c, true, fetchFailed(c, err))
		return
	}
	ctx, cancel := context.WithCancel(r.callContext())
	c.cancel, c.paced = cancel, !guard.RunMemory.Off()
	c.pieces, c.taken = make(chan piece, 1), make(chan bool, 1)
	unqueue := context.AfterFunc(ctx, func() { t.pool.drop(r, size) })
	q.Open = func() io.ReadCloser { return &upload{ctx: ctx, t: t, r: r, c: c} }
	if source := in.Number(); source >= 0 { // no JavaScript reads its body
		q.Open = r.pipeUpload(t, source)
	}
	c.start = func() {
		if !unqueue() { // the call is cancelled
			return
		}
		c.active = true
		f.active++
		if err := c.begin(ctx, cancel, t, r, q, by, size); err != nil {
			t.pool.drop(r, size)
			cancel()
			r.fetches.rest(r, c)
			t.answer(r, c, true, fetchFailed(c, err))
		}
	}
	if f.active >= maxConcurrent {
		f.queued = append(f.queued, c)
		return
	}
	c.start()
}

// begin has what a binding names answer a request; without a kind, a server. size is what the request holds. It does
// not wait for the answer.
func (c *call) begin(ctx context.Context, cancel context.CancelFunc, t *thread, r *run, q egress.Request,
	by workers.Binding, size int) error {
	if err := t.pool.hold(r, callBytes); err != nil {
		return err
	}
	over := func(err error) { // called once, by any goroutine
		lifecycle.EndSpan(c.span, err)
		if err != nil {
			t.answer(r, c, true, fetchFailed(c, err))
		}
		c.tap.Over(err) // after the answer: JavaScript learns first what became of the response
		if !c.whole {
			t.postTo(r, func(t *thread) { c.exchanged(t, r) })
		}
		cancel()
		t.pool.drop(r, size+callBytes+c.grown)
	}
	to, w := response{t, r, c}, r.attempt.Worker
	switch by.Kind {
	case workers.BindingService:
		if err := r.fetchService(ctx, to, q, by.Name, size, over); err != nil {
			t.pool.drop(r, callBytes)
			return err
		}
	case bindings.KindFiles:
		c.span = r.attempt.Begin(lifecycle.Operation{Kind: lifecycle.FileRequest, Method: q.Method, Target: by.Name})
		go func() { over(bindings.ExchangeFile(ctx, t.pool.cfg.Files, w, q, to)) }()
	default:
		c.span = r.attempt.Begin(lifecycle.Operation{Kind: lifecycle.Subrequest, Method: q.Method, Target: q.URL})
		c.propagate(&q, w)
		go func() {
			conns := t.pool.egress.Of(w.Owner)
			defer conns.Release()
			over(conns.Exchange(ctx, q, to))
		}()
	}
	return nil
}

// propagate names the span of a subrequest in its headers, if the manifest of w lists the host, and if the handler has
// not named another one. Any other host would learn which requests belong together.
func (c *call) propagate(q *egress.Request, w *workers.Worker) {
	if c.span == nil || w.Trace == nil {
		return
	}
	to, err := url.Parse(q.URL)
	if err != nil || !w.Trace.Propagates(to.Hostname()) {
		return
	}
	q.Headers = c.span.Context().AddTo(q.Headers)
}

// startQueued starts queued subrequests while there is room. On the thread.
func (f *fetches) startQueued(r *run) {
	for len(f.queued) > 0 && f.active < maxConcurrent {
		next := f.queued[0]
		f.queued = f.queued[1:]
		if r.calls[next.id] == next { // not aborted meanwhile
			next.start()
		}
	}
}

// rest removes a subrequest from those under way: it is over, or waits for a reader. On the thread.
func (f *fetches) rest(r *run, c *call) {
	if c.active {
		c.active = false
		f.active--
		f.startQueued(r)
	}
}

// abortCall cancels a call, or releases the body that it brought. JavaScript gets no answer.
func (r *run) abortCall(p *Pool, id float64) {
	r.release(p, id)
	if c := r.calls[id]; c != nil {
		if c.cancel != nil {
			c.cancel()
		}
		r.unregister(c)
	}
}

// exchanged says that the exchange of a subrequest is over. On the thread.
func (c *call) exchanged(t *thread, r *run) {
	if c.ended != nil {
		c.ended(t)
	}
	r.fetches.rest(r, c)
}

func fetchFailed(c *call, err error) func(*v8x.Call) []byte {
	return func(call *v8x.Call) []byte {
		call.Reset(opFetchFailed).Number(c.id)
		if thrown, ok := errors.AsType[lifecycle.Thrown](err); ok {
			call.String(thrown.Error()).Bool(true)
		} else {
			call.String("fetch failed: " + err.Error())
		}
		return nil
	}
}

// sends are the tasks that a run has sent to other workers.
type sends struct {
	sent int // so far
}

// store stores tasks for another worker of the owner.
func (s *sends) store(t *thread, r *run, in *v8x.Commands) {
	n := in.Left() + sendBytes
	c := r.register(in.Number())
	send, err := bindings.ReadSend(in)
	if err == nil {
		n += len(send.Tasks) * taskBytes
		err = s.admit(r, len(send.Tasks))
	}
	if err == nil {
		err = t.pool.hold(r, n)
	}
	if err != nil {
		t.answer(r, c, true, queued(c, err))
		return
	}
	send.Keep()
	owner := r.attempt.Worker.Owner
	span := r.attempt.Begin(send.Operation())
	if span != nil {
		send.Trace(span.Context())
	}
	ctx := r.callContext()
	go func() {
		err := send.Do(ctx, t.pool.host, owner)
		lifecycle.EndSpan(span, err)
		t.pool.drop(r, n)
		t.answer(r, c, true, queued(c, err))
	}()
}

// admit counts n tasks of the run, or returns an error when it may not send so many more.
func (s *sends) admit(r *run, n int) error {
	if n > r.limits.Sends-s.sent && !guard.SendRates.Off() {
		return fmt.Errorf("too many sends: at most %d per event (limits.sends)", r.limits.Sends)
	}
	s.sent += n
	return nil
}

// sendBytes is what a send() under way counts as, in addition to its bytes: a goroutine waits for it.
const sendBytes = 8 << 10

// taskBytes is what each of its tasks counts as, in addition to its bytes, while it is published.
const taskBytes = 1 << 10

// queued is the answer to a send; err is nil when the task is stored.
func queued(c *call, err error) func(*v8x.Call) []byte {
	return func(call *v8x.Call) []byte {
		call.Reset(opQueued).Number(c.id)
		if err != nil {
			call.String(err.Error())
		} else {
			call.Null()
		}
		return nil
	}
}
