package hostcalls

import (
	"context"
	"errors"
	"io"
	"math"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/isolates/egress"
	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/pipe"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// A body that comes from outside, and that JavaScript hands on without reading it, does not enter it. JavaScript knows
// its source by a number: that of a subrequest, of a body that Go keeps, or eventBody.

// eventBody is the number of the body of the event, in parts.
const eventBody = 0

// movedMiB is charged to the owner for each MiB that a pipe or a TCP socket moves: what net/http and the system take
// for it.
const movedMiB = 600 * time.Microsecond

// piped is what a run has of bodies that no JavaScript reads.
type piped struct {
	moved atomic.Int64      // bytes that pipes and TCP sockets have moved
	kept  map[float64]value // bodies that stay in Go, by id; nil until the first. For the thread
}

// payer is the pipe.Owner of what a run's pipes move.
type payer struct {
	r *Calls
}

// Hold implements pipe.Owner.
func (p payer) Hold(n int) error { return p.r.run.Hold(n) }

// Drop implements pipe.Owner.
func (p payer) Drop(n int) { p.r.run.Drop(n) }

// Moved implements pipe.Owner. The time is the owner's, not the run's: it is no time of its code.
func (p payer) Moved(n int) {
	p.r.process.Piped.Add(uint64(n))
	p.r.moved(n)
}

// moved charges n bytes that Go moved for the run. Any goroutine may call it.
func (r *Calls) moved(n int) {
	const step = 1 << 20
	after := r.piped.moved.Add(int64(n))
	if mib := after/step - (after-int64(n))/step; mib > 0 {
		r.run.ChargeOwner(time.Duration(mib) * movedMiB)
	}
}

var errNoSource = errors.New("the source of the body is over")

// Coded reports whether a source is a response in a content coding. On the thread.
func (r *Calls) Coded(source float64) bool {
	c := r.pending[source]
	return c != nil && c.coded
}

// Pipe moves what is left of a source to a sink. What comes in the given content coding is moved as it comes, in any
// other it is decoded. stop cancels the source. On the thread.
func (r *Calls) Pipe(source float64, to pipe.Sink, coding string) (stop func()) {
	if v, ok := r.take(source); ok {
		ctx, cancel := context.WithCancel(r.callContext())
		go func() {
			defer cancel()
			pipe.Value(ctx, v.data, v.held, to, payer{r})
		}()
		return cancel
	}
	if source != eventBody {
		c := r.pending[source]
		if c == nil || c.taken == nil {
			to.Close(errNoSource)
			return func() {}
		}
		c.passOn(r, to, coding)
		return c.cancel
	}
	parts := r.run.Attempt().Event.Parts
	if parts == nil {
		to.Close(errNoSource)
		return func() {}
	}
	ctx, cancel := context.WithCancel(r.callContext())
	go func() {
		defer cancel()
		pipe.Parts(ctx, parts, r.parts, to, payer{r})
	}()
	return cancel
}

// pipeUpload returns the Open of a request with these headers whose body a source makes. It can be sent once.
func (r *Calls) pipeUpload(source float64, headers []string) func() io.ReadCloser {
	var opened atomic.Bool
	return func() io.ReadCloser {
		to, from := pipe.Joint()
		if opened.Swap(true) {
			to.Close(errSentBefore)
			return from
		}
		r.run.Later(func() {
			if r.over {
				to.Close(errNoSource)
				return
			}
			r.Pipe(source, to, egress.CodingOf(headers))
		})
		return from
	}
}

var errSentBefore = errors.New("the body was sent before, and cannot be sent again")

// gather makes one value of a source: the call's id, the source, how many bytes it may have (0 = any number), and
// whether Go keeps it, for a call of a binding.
func (r *Calls) gather(in *v8x.Commands) {
	c := r.register(in.Number())
	source, most, keeps := in.Number(), in.Int(), in.Bool()
	if most == 0 {
		most = math.MaxInt64
	}
	owner := payer{r}
	done := func(data []byte, held int, err error) {
		r.run.Later(func() {
			defer func() { r.run.Drop(held) }() // also if the turn goes away
			c.deliver(r, true, func(call *v8x.Call) []byte {
				call.Reset(js.OpGathered).Number(c.id)
				if err != nil {
					call.String(err.Error()).Bool(errors.Is(err, pipe.ErrTooLong))
					return nil
				}
				if keeps {
					r.keep(c.id, value{data, held})
					held = 0
					call.Null().Number(float64(len(data)))
					return nil
				}
				call.Null().Body()
				return data
			})
		})
	}
	v, ok := r.take(source)
	switch {
	case !ok:
		r.Pipe(source, pipe.NewGather(most, owner.Hold, done), "")
	case int64(len(v.data)) > most:
		done(nil, v.held, pipe.ErrTooLong)
	default:
		owner.Moved(len(v.data))
		done(v.data, v.held, nil)
	}
}
