package isolates

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/pinwheel-run/pinwheel/internal/guard"
	"github.com/pinwheel-run/pinwheel/isolates/bindings"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// call is an operation outside the isolate that a run requested: a subrequest or a send. Its answer is posted to the
// thread.
type call struct {
	id     float64
	cancel context.CancelFunc
	start  func() // starts a subrequest that is queued

	// These fields are a subrequest's. Only the thread uses them, except for the channels.
	paced   bool          // its response comes only as fast as its reader takes it
	active  bool          // it is under way
	stalled bool          // its response is not read: the rest of it waits
	unread  int           // bytes given since JavaScript asked for more
	pieces  chan piece    // capacity 1; of the request's body
	taken   chan struct{} // capacity 1; the thread has taken a chunk, and another may come
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
	t.postTo(r, func(t *thread) {
		if r.over || r.calls[c.id] != c {
			return
		}
		if last {
			r.unregister(c)
		}
		body := encode(&t.call)
		t.turn(r, t.call.Bytes(), body)
	})
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

// fetch starts a subrequest, or queues it behind those under way.
func (t *thread) fetch(r *run, in *v8x.Commands) {
	size := in.Left()
	c := r.register(in.Number())
	if size > maxRequestHead+maxInline {
		t.answer(r, c, true, fetchFailed(c, fmt.Errorf("the URL and the headers of the request have %d bytes: at most %d", size, maxRequestHead)))
		return
	}
	q := egress.Request{Method: in.Text(), URL: in.Text(), Headers: in.Strings(), Body: slices.Clone(in.View())}
	q.Redirect, q.Length = in.Text(), in.Int()
	if again := in.Bool(); !again { // following a redirect is not a new subrequest
		r.made++
	}
	if limit := r.limits.Subrequests; r.made > limit {
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
	c.pieces, c.taken = make(chan piece, 1), make(chan struct{}, 1)
	unqueue := context.AfterFunc(ctx, func() { t.pool.drop(r, size) })
	c.start = func() {
		if !unqueue() { // the call is cancelled
			return
		}
		c.active = true
		r.active++
		go func() {
			defer t.pool.drop(r, size)
			t.perform(ctx, cancel, r, c, q)
		}()
	}
	if r.active >= maxConcurrent {
		r.queued = append(r.queued, c)
		return
	}
	c.start()
}

// startQueued starts queued subrequests while there is room. On the thread.
func (t *thread) startQueued(r *run) {
	for len(r.queued) > 0 && r.active < maxConcurrent {
		next := r.queued[0]
		r.queued = r.queued[1:]
		if r.calls[next.id] == next { // not aborted meanwhile
			next.start()
		}
	}
}

// rest removes a subrequest from those under way: it is over, or waits for a reader. On the thread.
func (t *thread) rest(r *run, c *call) {
	if c.active {
		c.active = false
		r.active--
		t.startQueued(r)
	}
}

// abortCall cancels a call. JavaScript gets no answer.
func (r *run) abortCall(id float64) {
	if c := r.calls[id]; c != nil {
		if c.cancel != nil {
			c.cancel()
		}
		r.unregister(c)
	}
}

// perform carries out the subrequest in its own goroutine.
func (t *thread) perform(ctx context.Context, cancel context.CancelFunc, r *run, c *call, q egress.Request) {
	defer cancel()
	defer t.postTo(r, func(t *thread) { t.rest(r, c) })
	err := t.pool.hold(r, callBytes)
	if err == nil {
		q.Open = func() io.ReadCloser { return &upload{ctx: ctx, t: t, r: r, c: c} }
		conns := t.pool.egress.Of(r.attempt.Worker.Owner)
		err = conns.Exchange(ctx, q, response{t, r, c})
		conns.Release()
		t.pool.drop(r, callBytes)
	}
	if err != nil {
		t.answer(r, c, true, fetchFailed(c, err))
	}
}

func fetchFailed(c *call, err error) func(*v8x.Call) []byte {
	return func(call *v8x.Call) []byte {
		call.Reset(opFetchFailed).Number(c.id).String("fetch failed: " + err.Error())
		return nil
	}
}

// enqueue stores a task for another worker of the owner.
func (t *thread) enqueue(r *run, in *v8x.Commands) {
	n := in.Left() + sendBytes
	c := r.register(in.Number())
	send := bindings.ReadSend(in)
	if r.sent++; r.sent > r.limits.Sends && !guard.SendRates.Off() {
		t.answer(r, c, true, queued(c, fmt.Errorf("too many sends: at most %d per event (limits.sends)", r.limits.Sends)))
		return
	}
	if err := t.pool.hold(r, n); err != nil {
		t.answer(r, c, true, queued(c, err))
		return
	}
	send.Keep()
	owner := r.attempt.Worker.Owner
	ctx := r.callContext()
	go func() {
		err := send.Do(ctx, t.pool.host, owner)
		t.pool.drop(r, n)
		t.answer(r, c, true, queued(c, err))
	}()
}

// sendBytes is what a send() under way counts as, in addition to its bytes: a goroutine waits for it.
const sendBytes = 8 << 10

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
