package hostcalls

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
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

const (
	MaxConcurrent  = 6         // subrequests of one event under way at once
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

// tooMany says that the subrequest that was counted last is one more than the run may make; nil = it is not.
func (f *fetches) tooMany(r *Calls) error {
	if limit := r.run.Limits().Subrequests; f.made > limit {
		return fmt.Errorf("too many subrequests: at most %d per event", limit)
	}
	return nil
}

// begin starts a subrequest, or queues it behind those under way.
func (f *fetches) begin(r *Calls, in *v8x.Commands) {
	size := in.Left()
	c := r.register(in.Number())
	if size > maxRequestHead+maxInline {
		r.answer(c, true, fetchFailed(c, fmt.Errorf("the URL and the headers of the request have %d bytes: at most %d", size, maxRequestHead)))
		return
	}
	q := egress.Request{Method: in.Text(), URL: in.Text(), Headers: in.Strings(), Body: slices.Clone(in.View())}
	q.Redirect, q.Length = in.Text(), in.Int()
	if again := in.Bool(); !again { // following a redirect is not a new subrequest
		f.made++
	}
	by := workers.Binding{Kind: workers.BindingKind(in.Text()), Name: in.Text()} // without a kind: a server
	if err := f.tooMany(r); err != nil {
		r.answer(c, true, fetchFailed(c, err))
		return
	}
	size += queuedBytes
	if err := r.run.Hold(size); err != nil {
		r.answer(c, true, fetchFailed(c, err))
		return
	}
	ctx, cancel := context.WithCancel(r.callContext())
	c.cancel, c.paced = cancel, !guard.RunMemory.Off()
	c.pieces, c.taken = make(chan piece, 1), make(chan bool, 1)
	unqueue := context.AfterFunc(ctx, func() { r.run.Drop(size) })
	q.Open = func() io.ReadCloser { return &upload{ctx: ctx, r: r, c: c} }
	if source := in.Number(); source >= 0 { // no JavaScript reads its body
		q.Open = r.pipeUpload(source, q.Headers)
	}
	if in.Left() > 0 {
		c.cf = in.Text()
	}
	c.start = func() {
		if !unqueue() { // the call is cancelled
			return
		}
		c.active = true
		f.active++
		if err := c.begin(ctx, cancel, r, q, by, size); err != nil {
			r.run.Drop(size)
			cancel()
			r.fetches.endActive(r, c)
			r.answer(c, true, fetchFailed(c, err))
		}
	}
	if f.active >= MaxConcurrent {
		f.queued = append(f.queued, c)
		return
	}
	c.start()
}

// begin has what a binding names answer a request; without a kind, a server. size is what the request holds. It does
// not wait for the answer.
func (c *call) begin(ctx context.Context, cancel context.CancelFunc, r *Calls, q egress.Request,
	by workers.Binding, size int) error {
	if err := r.run.Hold(callBytes); err != nil {
		return err
	}
	over := func(err error) { // called once, by any goroutine
		lifecycle.EndSpan(c.span, err)
		if err != nil {
			r.answer(c, true, fetchFailed(c, err))
		}
		c.tap.Over(err) // after the answer: JavaScript learns first what became of the response
		if !c.whole {
			r.run.Later(func() { c.exchanged(r) })
		}
		cancel()
		r.run.Drop(size + callBytes + c.grown)
	}
	to, w := response{r, c}, r.run.Attempt().Worker
	switch by.Kind {
	case workers.BindingService:
		if err := r.fetchService(ctx, to, q, by.Name, size, over); err != nil {
			r.run.Drop(callBytes)
			return err
		}
	case bindings.KindFiles:
		c.span = r.run.Attempt().Begin(lifecycle.Operation{Kind: lifecycle.FileRequest, Method: q.Method, Target: by.Name})
		go func() { over(bindings.ExchangeFile(ctx, r.process.Files, w, q, to)) }()
	default:
		c.span = r.run.Attempt().Begin(lifecycle.Operation{Kind: lifecycle.Subrequest, Method: q.Method, Target: q.URL})
		c.propagate(&q, w)
		go func() {
			conns := r.process.Egress.Of(w.Owner)
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
func (f *fetches) startQueued(r *Calls) {
	for len(f.queued) > 0 && f.active < MaxConcurrent {
		next := f.queued[0]
		f.queued = f.queued[1:]
		if r.pending[next.id] == next { // not aborted meanwhile
			next.start()
		}
	}
}

// endActive removes a subrequest from those under way: it is over, or waits for a reader. On the thread.
func (f *fetches) endActive(r *Calls, c *call) {
	if c.active {
		c.active = false
		f.active--
		f.startQueued(r)
	}
}

// abortCall cancels a call, or releases the body that it brought. JavaScript gets no answer.
func (r *Calls) abortCall(id float64) {
	r.release(id)
	if c := r.pending[id]; c != nil {
		if c.cancel != nil {
			c.cancel()
		}
		r.unregister(c)
	}
}

// exchanged says that the exchange of a subrequest is over. On the thread.
func (c *call) exchanged(r *Calls) {
	if c.ended != nil {
		c.ended()
	}
	r.fetches.endActive(r, c)
}

func fetchFailed(c *call, err error) func(*v8x.Call) []byte {
	return func(call *v8x.Call) []byte {
		call.Reset(js.OpFetchFailed).Number(c.id)
		if thrown, ok := errors.AsType[lifecycle.Thrown](err); ok {
			call.String(thrown.Error()).Bool(true)
		} else {
			told, _ := errors.AsType[egress.Told](err)
			call.String("fetch failed: " + err.Error()).Bool(false).String(told.Code)
		}
		return nil
	}
}
