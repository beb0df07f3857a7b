package hostcalls

import (
	"context"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/pipe"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// response brings the response of call c into the JavaScript of its run. It is the egress.Receiver of the call's
// exchange.
type response struct {
	r *Calls
	c *call
}

// Redirect passes the new location to JavaScript, which sends the next request (js/fetch/redirect.js). This call is
// over.
func (x response) Redirect(status int, location, policies string) {
	x.c.status(status)
	x.r.answer(x.c, true, func(call *v8x.Call) []byte {
		call.Reset(js.OpRedirect).Number(x.c.id).Number(float64(status)).String(location)
		if policies == "" {
			call.Null()
		} else {
			call.String(policies)
		}
		call.Bool(!guard.Redirects.Off())
		return nil
	})
}

func (x response) Head(status int, text string, headers []string, coded bool) {
	x.c.status(status)
	x.r.answer(x.c, false, func(call *v8x.Call) []byte {
		x.c.coded = coded
		call.Reset(js.OpResponse).Number(x.c.id).Number(float64(status)).String(text).Strings(headers).Bool(x.c.paced)
		call.Bool(coded)
		return nil
	})
}

// Coding waits until JavaScript asks for the body, which reads no coding, or until it goes to a sink.
func (x response) Coding(ctx context.Context) string {
	if x.c.tap.Sink() != nil {
		return x.c.coding
	}
	if !x.c.paced {
		return ""
	}
	x.r.run.Later(func() { x.c.awaitReader(x.r) })
	select {
	case on := <-x.c.taken:
		if on {
			return x.c.coding
		}
	case <-ctx.Done():
	}
	return ""
}

// awaitReader says who takes the body of a response, once something does. On the thread.
func (c *call) awaitReader(r *Calls) {
	switch {
	case r.over || r.pending[c.id] != c:
	case c.tap.Sink() != nil:
		c.taken <- true
	case c.asked:
		c.taken <- false
	default:
		c.stall(r)
	}
}

// Whole passes a response with all of its body. Nothing follows. The end of the exchange comes with it: each queued
// call may wake the thread.
func (x response) Whole(status int, text string, headers []string, body []byte) {
	x.c.status(status)
	x.c.whole = true
	x.r.run.Later(func() {
		x.c.exchanged(x.r) // first: give may not return
		x.c.deliver(x.r, true, func(call *v8x.Call) []byte {
			call.Reset(js.OpWhole).Number(x.c.id).Number(float64(status)).String(text).Strings(headers).Body()
			return body
		})
	})
}

const (
	maxRedirects = 20        // of a subrequest (Fetch standard §4.4): js/fetch/redirect.js counts them
	UnreadBytes  = 256 << 10 // of a response that are passed to JavaScript before it asks for more
)

// Chunk waits until the thread has taken the chunk. Nothing comes before JavaScript has asked for the body. Then at
// most one chunk is read ahead of it, in addition to UnreadBytes. When no JavaScript reads the body, the chunk goes on
// from here.
func (x response) Chunk(ctx context.Context, chunk []byte) (reuse bool) {
	if to := x.c.tap.Sink(); to != nil {
		return x.pass(ctx, to, chunk)
	}
	x.r.run.Later(func() { x.c.takeChunk(x.r, chunk) })
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
	payer{x.r}.Moved(len(chunk))
	return free
}

// Spent implements egress.Receiver.
func (x response) Spent(cpu time.Duration) {
	x.r.run.Later(func() {
		if !x.r.over {
			x.r.run.Charge(cpu)
		}
	})
}

// Grow implements egress.Receiver. begin gives the memory back.
func (x response) Grow(n int) bool {
	if x.r.run.Hold(n) != nil {
		return false
	}
	x.c.grown += n
	return true
}

func (x response) End() {
	x.r.answer(x.c, true, func(call *v8x.Call) []byte {
		call.Reset(js.OpChunk).Number(x.c.id).Null()
		return nil
	})
}

// takeChunk passes a chunk to JavaScript. On the thread.
func (c *call) takeChunk(r *Calls, chunk []byte) {
	switch {
	case r.over || r.pending[c.id] != c:
		return
	case c.tap.Sink() != nil:
		c.taken <- true
		return
	case c.paced && !c.asked:
		c.first = chunk
		c.stall(r)
		return
	}
	c.unread += len(chunk)
	// The queued call follows the turn, even if the turn leaves its thread.
	r.run.Follow(func() { c.chunkTaken(r) })
	r.run.Call().Reset(js.OpChunk).Number(c.id).Body()
	r.run.Turn(r.run.Call().Bytes(), chunk)
}

// chunkTaken lets the next chunk come, unless JavaScript has too many bytes that it has not asked for. On the thread.
func (c *call) chunkTaken(r *Calls) {
	switch {
	case r.over || r.pending[c.id] != c || !c.paced:
	case c.unread < UnreadBytes:
		c.taken <- false
	default:
		c.stall(r)
	}
}

// stall says that the rest of a response waits for a reader. On the thread.
func (c *call) stall(r *Calls) {
	c.stalled = true
	r.stalled++
	r.fetches.endActive(r, c)
	if !r.run.BetweenEvents() && !r.run.CanEnd() {
		r.run.Stop(events.ReasonTimeout, "the handler can never finish: nothing it waits for is pending, and it does not read the rest of a response")
	}
}

// resume undoes stall. It reports whether the response was stalled. On the thread.
func (c *call) resume(r *Calls) bool {
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
func (f *fetches) more(r *Calls, id float64) {
	c := r.pending[id]
	if c == nil || c.taken == nil {
		return
	}
	c.unread, c.asked = 0, true
	if !c.resume(r) {
		return
	}
	if first := c.first; first != nil {
		c.first = nil
		r.run.Follow(func() { c.takeChunk(r, first) })
		return
	}
	c.taken <- false
}

// passOn has the rest of a response go to a sink, which takes a body in this coding, too. On the thread.
func (c *call) passOn(r *Calls, to pipe.Sink, coding string) {
	c.coding = coding
	c.tap.To(to)
	if c.resume(r) {
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
