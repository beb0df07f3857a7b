package isolates

import (
	"context"
	"fmt"
	"slices"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/guard"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// call is something a run asked of the world: a subrequest or a send. Its answer is posted to the thread.
type call struct {
	id     float64
	cancel context.CancelFunc
	start  func() // of a subrequest that waits for its turn

	// Of a subrequest; the thread's only, but for the channels.
	paced   bool          // its response comes as it is taken
	active  bool          // it is one of those under way
	stalled bool          // nobody reads the response: the rest of it waits
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

// unregister forgets a call: what is answered to it reaches nothing.
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

// answer brings the answer of call c into the run's JavaScript, from any goroutine. last says that
// nothing follows. An answer that comes too late reaches nothing.
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
	maxInline      = 16 << 10  // bytes of a body that comes with its request; 64_upload.js

	// What a subrequest counts as among what its run holds: beside what it came with; and while it is under way, for what is read and
	// written at once and what the server may have sent ahead.
	queuedBytes = 2 << 10
	callBytes   = 320 << 10 // uploadPiece, chunkBytes, maxResponseHead, streamBuffer
)

// request is a subrequest as JavaScript sent it.
type request struct {
	method, url, redirect string
	headers               []string
	body                  []byte // all of it, or nil
	length                int64  // of the body; -1 when nobody knows
	again                 bool   // it follows a redirect
}

// fetch starts a subrequest, or queues it behind those under way.
func (t *thread) fetch(r *run, in *v8x.Commands) {
	size := in.Left()
	c := r.register(in.Number())
	if size > maxRequestHead+maxInline {
		t.answer(r, c, true, fetchFailed(c, fmt.Errorf("the URL and the headers of the request have %d bytes: at most %d", size, maxRequestHead)))
		return
	}
	q := request{method: in.Text(), url: in.Text(), headers: in.Strings(), body: slices.Clone(in.View())}
	q.redirect, q.length, q.again = in.Text(), in.Int(), in.Bool()
	if !q.again {
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
	ctx, cancel := context.WithCancel(r.context())
	c.cancel, c.paced = cancel, !guard.RunMemory.Off()
	c.pieces, c.taken = make(chan piece, 1), make(chan struct{}, 1)
	unqueue := context.AfterFunc(ctx, func() { t.pool.drop(r, size) })
	c.start = func() {
		if !unqueue() { // it is cancelled
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

// startQueued lets queued subrequests go for which there is room. On the thread.
func (t *thread) startQueued(r *run) {
	for len(r.queued) > 0 && r.active < maxConcurrent {
		next := r.queued[0]
		r.queued = r.queued[1:]
		if r.calls[next.id] == next { // not aborted meanwhile
			next.start()
		}
	}
}

// rest takes a subrequest from those under way: it is over, or waits for a reader. On the thread.
func (t *thread) rest(r *run, c *call) {
	if c.active {
		c.active = false
		r.active--
		t.startQueued(r)
	}
}

// abortCall cancels a call. JavaScript hears nothing of it any more.
func (r *run) abortCall(id float64) {
	if c := r.calls[id]; c != nil {
		if c.cancel != nil {
			c.cancel()
		}
		r.unregister(c)
	}
}

// perform does the subrequest, in a goroutine of its own.
func (t *thread) perform(ctx context.Context, cancel context.CancelFunc, r *run, c *call, q request) {
	defer cancel()
	defer t.postTo(r, func(t *thread) { t.rest(r, c) })
	err := t.pool.hold(r, callBytes)
	if err == nil {
		err = t.exchange(ctx, r, c, q)
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
	worker, body := in.Text(), in.View()
	m := Message{ContentType: in.Text(), Headers: in.Strings()}
	if r.sent++; r.sent > r.limits.Sends && !guard.SendRates.Off() {
		t.answer(r, c, true, queued(c, fmt.Errorf("too many sends: at most %d per event (limits.sends)", r.limits.Sends)))
		return
	}
	if err := t.pool.hold(r, n); err != nil {
		t.answer(r, c, true, queued(c, err))
		return
	}
	m.Body = slices.Clone(body)
	owner := r.attempt.Worker.Owner
	ctx := r.context()
	go func() {
		err := events.CheckName("worker", worker)
		if err == nil {
			err = t.pool.host.Enqueue(ctx, owner, worker, m)
		}
		t.pool.drop(r, n)
		t.answer(r, c, true, queued(c, err))
	}()
}

// sendBytes is what a send() under way counts as, beside its bytes: a goroutine waits for it.
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
