package isolates

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/pipe"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// upload is the body of a subrequest that stays in JavaScript until it is written. Each piece is requested when the one
// before it is being sent.
type upload struct {
	ctx context.Context //nolint:containedctx // the context of the call
	t   *thread
	r   *run
	c   *call

	offset int64 // of the next piece
	piece  []byte
	last   bool // nothing comes after piece
}

// piece is a part of a request body.
type piece struct {
	offset int64
	bytes  []byte
	last   bool
}

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	for len(u.piece) == 0 {
		if u.last {
			return 0, io.EOF
		}
		if err := u.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, u.piece)
	u.piece = u.piece[n:]
	return n, nil
}

// next waits for the next piece.
func (u *upload) next() error {
	from := u.offset
	u.t.postTo(u.r, func(t *thread) {
		if !u.r.over && u.r.calls[u.c.id] == u.c {
			t.turn(u.r, t.call.Reset(opUploadWanted).Number(u.c.id).Number(float64(from)).Bytes(), nil)
		}
	})
	for {
		select {
		case got := <-u.c.pieces:
			if got.offset != from { // the piece was for another reader, whose connection broke
				continue
			}
			u.offset += int64(len(got.bytes))
			u.piece, u.last = got.bytes, got.last
			return nil
		case <-u.ctx.Done():
			return u.ctx.Err()
		}
	}
}

// Close implements io.Closer.
func (u *upload) Close() error {
	u.piece, u.last = nil, true
	return nil
}

var errPiece = errors.New("isolates: a piece of a request's body that is too long")

// uploadPiece is the largest number of bytes in a piece. fetch/upload.js has the same bound.
const uploadPiece = 64 << 10

// takePiece takes a piece from JavaScript: request, offset, bytes, whether it is the last. It replaces a piece that no
// reader took.
func (f *fetches) takePiece(t *thread, r *run, in *v8x.Commands) {
	c := r.calls[in.Number()]
	if c == nil || c.pieces == nil {
		return
	}
	p := piece{offset: in.Int()}
	view := in.View()
	p.last = in.Bool()
	if len(view) > uploadPiece {
		t.answer(r, c, true, fetchFailed(c, errPiece))
		return
	}
	p.bytes = slices.Clone(view)
	select {
	case <-c.pieces:
	default:
	}
	c.pieces <- p
}

// A body that comes from outside, and that JavaScript hands on without reading it, does not enter it. JavaScript knows
// its source by a number: that of a subrequest, of a body that Go keeps, or eventBody.

// eventBody is the number of the body of the event, in parts.
const eventBody = 0

// movedMiB is charged to the owner for each MiB that a pipe moves: what net/http and the system take for it.
const movedMiB = 600 * time.Microsecond

// piped is what a run has of bodies that no JavaScript reads.
type piped struct {
	moved atomic.Int64      // bytes that pipes have moved
	kept  map[float64]value // bodies that stay in Go, by id; nil until the first. For the thread
}

// payer is the pipe.Owner of what a run's pipes move.
type payer struct {
	pool *Pool
	run  *run
}

// Hold implements pipe.Owner.
func (p payer) Hold(n int) error { return p.pool.hold(p.run, n) }

// Drop implements pipe.Owner.
func (p payer) Drop(n int) { p.pool.drop(p.run, n) }

// Moved implements pipe.Owner. The time is the owner's, not the run's: it is no time of its code.
func (p payer) Moved(n int) {
	const step = 1 << 20
	p.pool.metrics.piped.Add(float64(n))
	after := p.run.piped.moved.Add(int64(n))
	if mib := after/step - (after-int64(n))/step; mib > 0 {
		p.pool.source.Charge(p.run.attempt.Worker.Owner, time.Duration(mib)*movedMiB)
	}
}

var errNoSource = errors.New("the source of the body is over")

// pipe moves what is left of a source to a sink. stop cancels the source. On the thread.
func (r *run) pipe(t *thread, source float64, to pipe.Sink) (stop func()) {
	if v, ok := r.take(source); ok {
		ctx, cancel := context.WithCancel(r.callContext())
		go func() {
			defer cancel()
			pipe.Value(ctx, v.data, v.held, to, payer{t.pool, r})
		}()
		return cancel
	}
	if source != eventBody {
		c := r.calls[source]
		if c == nil || c.taken == nil {
			to.Close(errNoSource)
			return func() {}
		}
		c.passOn(r, to)
		return c.cancel
	}
	parts := r.attempt.Event.Parts
	if parts == nil {
		to.Close(errNoSource)
		return func() {}
	}
	ctx, cancel := context.WithCancel(r.callContext())
	go func() {
		defer cancel()
		pipe.Parts(ctx, parts, r.parts, to, payer{t.pool, r})
	}()
	return cancel
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
				c.Reset(opPiped).Number(float64(r.id))
			})
		})
	b.begin = func() { b.stop = r.pipe(t, source, b.outlet) }
}

// pipeUpload returns the Open of a request whose body a source makes. It can be sent once.
func (r *run) pipeUpload(t *thread, source float64) func() io.ReadCloser {
	var opened atomic.Bool
	return func() io.ReadCloser {
		to, from := pipe.Joint()
		if opened.Swap(true) {
			to.Close(errSentBefore)
			return from
		}
		t.postTo(r, func(t *thread) {
			if r.over {
				to.Close(errNoSource)
				return
			}
			r.pipe(t, source, to)
		})
		return from
	}
}

var errSentBefore = errors.New("the body was sent before, and cannot be sent again")

// gather makes one value of a source: the call's id, the source, how many bytes it may have (0 = any number), and
// whether Go keeps it, for a call of a binding.
func (r *run) gather(t *thread, in *v8x.Commands) {
	c := r.register(in.Number())
	source, most, keeps := in.Number(), in.Int(), in.Bool()
	if most == 0 {
		most = math.MaxInt64
	}
	owner := payer{t.pool, r}
	done := func(data []byte, held int, err error) {
		t.postTo(r, func(t *thread) {
			defer func() { t.pool.drop(r, held) }() // also if the turn goes away
			c.give(t, r, true, func(call *v8x.Call) []byte {
				call.Reset(opGathered).Number(c.id)
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
		r.pipe(t, source, pipe.NewGather(most, owner.Hold, done))
	case int64(len(v.data)) > most:
		done(nil, v.held, pipe.ErrTooLong)
	default:
		owner.Moved(len(v.data))
		done(v.data, v.held, nil)
	}
}

// value is a body that stays in Go in one piece: what a call of a binding brought, or what one is to store. It is
// charged to the run until something takes it, at the latest until the run ends.
type value struct {
	data []byte
	held int // bytes that are charged for it
}

const (
	leastKept = 64 << 10 // bytes: a shorter value enters JavaScript with its call
	keptShare = 2        // values that calls bring and that nothing has taken have at most 1/keptShare of the run's memory
)

// keep keeps a value under the id of the call that brought it. On the thread.
func (r *run) keep(id float64, v value) {
	if r.piped.kept == nil {
		r.piped.kept = map[float64]value{}
	}
	r.piped.kept[id] = v
}

// mayKeep reports whether a value that a call brought stays in Go. Those that JavaScript has forgotten stay until the
// run ends. So they get a share of its memory, and what is beyond it enters JavaScript, where garbage is collected.
func (r *run) mayKeep(n int) bool {
	all := n
	for _, v := range r.piped.kept {
		all += v.held
	}
	return n >= leastKept && all <= r.limits.HeapMB<<20/keptShare
}

// take returns a value and forgets it. The caller gives back what it holds. On the thread.
func (r *run) take(id float64) (v value, ok bool) {
	v, ok = r.piped.kept[id]
	delete(r.piped.kept, id)
	return v, ok
}

// release gives a value up, if there is one. On the thread.
func (r *run) release(p *Pool, id float64) {
	if v, ok := r.take(id); ok {
		p.drop(r, v.held)
	}
}
