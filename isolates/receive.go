package isolates

import (
	"context"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/isolates/pipe"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// response brings the response of call c into the JavaScript of its run. It is the egress.Receiver of the call's
// exchange.
type response struct {
	t *thread
	r *run
	c *call
}

// Redirect passes the new location to JavaScript, which sends the next request (js/fetch/redirect.js). This call is
// over.
func (x response) Redirect(status int, location, policies string) {
	x.c.status(status)
	x.t.answer(x.r, x.c, true, func(call *v8x.Call) []byte {
		call.Reset(opRedirect).Number(x.c.id).Number(float64(status)).String(location)
		if policies == "" {
			call.Null()
		} else {
			call.String(policies)
		}
		call.Bool(!guard.Redirects.Off())
		return nil
	})
}

func (x response) Head(status int, text string, headers []string) {
	x.c.status(status)
	x.t.answer(x.r, x.c, false, func(call *v8x.Call) []byte {
		call.Reset(opResponse).Number(x.c.id).Number(float64(status)).String(text).Strings(headers).Bool(x.c.paced)
		return nil
	})
}

// Whole passes a response with all of its body. Nothing follows. The end of the exchange comes with it: each queued
// call may wake the thread.
func (x response) Whole(status int, text string, headers []string, body []byte) {
	x.c.status(status)
	x.c.whole = true
	x.t.postTo(x.r, func(t *thread) {
		x.c.exchanged(t, x.r) // first: give may not return
		x.c.give(t, x.r, true, func(call *v8x.Call) []byte {
			call.Reset(opWhole).Number(x.c.id).Number(float64(status)).String(text).Strings(headers).Body()
			return body
		})
	})
}

const (
	maxRedirects = 20        // of a subrequest (Fetch standard §4.4): js/fetch/redirect.js counts them
	unreadBytes  = 256 << 10 // of a response that are passed to JavaScript before it asks for more
)

// Chunk waits until the thread has taken the chunk. Nothing comes before JavaScript has asked for the body. Then at
// most one chunk is read ahead of it, in addition to unreadBytes. When no JavaScript reads the body, the chunk goes on
// from here.
func (x response) Chunk(ctx context.Context, chunk []byte) (reuse bool) {
	if to := x.c.tap.Sink(); to != nil {
		return x.pass(ctx, to, chunk)
	}
	x.t.postTo(x.r, func(t *thread) { x.c.takeChunk(t, x.r, chunk) })
	if !x.c.paced {
		return false
	}
	select {
	case on := <-x.c.taken:
		if on {
			return x.pass(ctx, x.c.tap.Sink(), chunk)
		}
	case <-ctx.Done():
	}
	return true
}

// pass passes a chunk to a sink. If that takes no more, the subrequest ends.
func (x response) pass(ctx context.Context, to pipe.Sink, chunk []byte) (reuse bool) {
	free, err := to.Write(ctx, chunk)
	if err != nil {
		x.c.cancel()
	}
	payer{x.t.pool, x.r}.Moved(len(chunk))
	return free
}

// Grow implements egress.Receiver. begin gives the memory back.
func (x response) Grow(n int) bool {
	if x.t.pool.hold(x.r, n) != nil {
		return false
	}
	x.c.grown += n
	return true
}

func (x response) End() {
	x.t.answer(x.r, x.c, true, func(call *v8x.Call) []byte {
		call.Reset(opChunk).Number(x.c.id).Null()
		return nil
	})
}

// takeChunk passes a chunk to JavaScript. On the thread.
func (c *call) takeChunk(t *thread, r *run, chunk []byte) {
	switch {
	case r.over || r.calls[c.id] != c:
		return
	case c.tap.Sink() != nil:
		c.taken <- true
		return
	case c.paced && !c.asked:
		c.first = chunk
		c.stall(t, r)
		return
	}
	c.unread += len(chunk)
	// The queued call follows the turn, even if the turn leaves its thread.
	t.queuedCalls.add(queuedCall{run: r, do: func(t *thread) { c.chunkTaken(t, r) }})
	t.call.Reset(opChunk).Number(c.id).Body()
	t.turn(r, t.call.Bytes(), chunk)
}

// chunkTaken lets the next chunk come, unless JavaScript has too many bytes that it has not asked for. On the thread.
func (c *call) chunkTaken(t *thread, r *run) {
	switch {
	case r.over || r.calls[c.id] != c || !c.paced:
	case c.unread < unreadBytes:
		c.taken <- false
	default:
		c.stall(t, r)
	}
}

// stall says that the rest of a response waits for a reader. On the thread.
func (c *call) stall(t *thread, r *run) {
	c.stalled = true
	r.stalled++
	r.fetches.rest(r, c)
	if !r.betweenEvents && !r.mayGoOn() {
		t.stop(r, events.ReasonTimeout, "the handler can never finish: nothing it waits for is pending, and it does not read the rest of a response")
	}
}

// goOn undoes stall. It reports whether the response was stalled. On the thread.
func (c *call) goOn(r *run) bool {
	if !c.stalled {
		return false
	}
	c.stalled = false
	r.stalled--
	c.active = true
	r.fetches.active++
	return true
}

// more is called when JavaScript asks for more of a response.
func (f *fetches) more(t *thread, r *run, id float64) {
	c := r.calls[id]
	if c == nil || c.taken == nil {
		return
	}
	c.unread, c.asked = 0, true
	if !c.goOn(r) {
		return
	}
	if first := c.first; first != nil {
		c.first = nil
		t.queuedCalls.add(queuedCall{run: r, do: func(t *thread) { c.takeChunk(t, r, first) }})
		return
	}
	c.taken <- false
}

// passOn has the rest of a response go to a sink. On the thread.
func (c *call) passOn(r *run, to pipe.Sink) {
	c.tap.To(to)
	if c.goOn(r) {
		c.first = nil
		c.taken <- true
	}
}

// status notes the status of a response.
func (c *call) status(status int) {
	if c.span != nil {
		c.span.Status(status)
	}
}
