package isolates

import (
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// wholeBody is the largest body, in bytes, that is sent in one message with its head when it is ready at once.
const wholeBody = 512 << 10

// firstCredit is how many bytes of a body may be made before its first chunk is published.
const firstCredit = 1 << 20

// body is what a run's reply has for a body that is made in chunks: until the end of the turn in which it began it is kept
// here, then it goes to a Stream.
type body struct {
	head  *events.Reply
	parts []events.Chunk
	size  int
	ended bool
	sent  bool

	upTo   atomic.Int64 // bytes that were granted, from any goroutine
	untold atomic.Bool  // the thread is to tell JavaScript so
}

// grant lets the body go on up to that many bytes in all. However often it is called, one message waits for the thread.
func (b *body) grant(t *thread, r *run, upTo int64) {
	for {
		before := b.upTo.Load()
		if upTo <= before || b.upTo.CompareAndSwap(before, upTo) {
			break
		}
	}
	if b.untold.CompareAndSwap(false, true) {
		t.tell(r, func(c *v8x.Call) {
			b.untold.Store(false)
			c.Reset(opCredit).Number(float64(r.id)).Number(float64(b.upTo.Load()))
		})
	}
}

// waits reports whether more of the body may come.
func (b *body) waits() bool { return b != nil && !b.ended }

// take adds a chunk.
func (b *body) take(c events.Chunk) {
	if b == nil || b.ended {
		return
	}
	b.ended = c.End || c.Failure != nil
	if b.sent {
		b.head.Stream.Push(c)
		return
	}
	b.parts = append(b.parts, c)
	b.size += len(c.Data)
}

// beginBody takes the head of a reply. It is reported when the turn is over.
func (t *thread) beginBody(r *run, head *events.Reply, now time.Time) {
	if r.replied {
		return
	}
	r.replied = true
	head.Duration = now.Sub(r.start)
	r.body = &body{head: head}
	t.bodies = append(t.bodies, r)
}

// takeBody takes a piece of the body: 0 = more follow, 1 = it is the end, 2 = the body broke off, 3 = more is there than was granted.
func (t *thread) takeBody(r *run, in *v8x.Commands) {
	c := events.Chunk{Data: slices.Clone(in.View())}
	switch in.Int() {
	case 1:
		c.End = true
	case 2:
		c.Failure = events.NewFailure(events.ReasonException, in.Text(), "")
	case 3:
		c.Waits = true
	}
	r.body.take(c)
}

// startBody reports the head of a run's reply: with all of its body when that was ready at once, else with a Stream.
func (t *thread) startBody(r *run) {
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
			Cancel: func(why string) { t.abort(r, why) },
		}
		for _, c := range b.parts {
			b.head.Stream.Push(c)
		}
	}
	b.parts = nil
	t.reports = append(t.reports, events.Report{Attempt: r.attempt, Reply: b.head})
}

// startBodies does it for all replies that began in the turn.
func (t *thread) startBodies() {
	for _, r := range t.bodies {
		t.startBody(r)
	}
	clear(t.bodies)
	t.bodies = t.bodies[:0]
}

// endBody ends a body that its run did not end.
func (b *body) endBody(r *run, e events.End) {
	if !b.waits() {
		return
	}
	f := e.Failure
	switch {
	case f == nil && e.Interrupted:
		f = events.Fail(events.ReasonUnavailable, "the run was interrupted; the event runs again")
	case f == nil && r.failure != nil:
		f = r.failure
	case f == nil:
		f = events.Fail(events.ReasonTimeout, "the event is over")
	}
	b.take(events.Chunk{Failure: f})
}

// firstGrant is how much of the reply's body may be made at first; 0 = it is wanted whole.
func firstGrant(e *events.Event) float64 {
	if e.Requester == nil {
		return 0
	}
	return float64(min(e.Requester.Credit, firstCredit))
}

// pullID is the id of the read of a part among a run's calls: those that JavaScript makes are positive, and it pulls one
// part at a time.
const pullID = -1

// pullPart reads the next part of the event's body that has bytes.
func (t *thread) pullPart(r *run) {
	parts := r.attempt.Event.Parts
	if parts == nil || r.calls[pullID] != nil {
		return
	}
	c := r.register(pullID)
	i, ctx := r.parts, r.context()
	go func() {
		var part []byte
		var err error
		// An empty part is no answer: the stream asks once, and waits until it is given bytes, the end or an error.
		for len(part) == 0 && err == nil && (parts.Live || i < parts.N) {
			if part, err = parts.Read(ctx, i); err == nil {
				i++
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		n := len(part)
		if n > 0 {
			if err = t.pool.hold(r, n); err != nil {
				part = nil
			} else {
				defer t.postTo(r, func(t *thread) { t.pool.drop(r, n) }) // after the answer
			}
		}
		t.answer(r, c, true, func(call *v8x.Call) []byte {
			r.parts = i
			call.Reset(opPart).Number(float64(r.id))
			switch {
			case err != nil:
				call.Null().String(err.Error())
			case n > 0:
				call.Body()
			}
			return part
		})
	}()
}

// tell makes a call into a run's JavaScript, from any goroutine, unless the run is over.
func (t *thread) tell(r *run, encode func(*v8x.Call)) {
	t.postTo(r, func(t *thread) {
		if r.over {
			return
		}
		encode(&t.call)
		t.turn(r, t.call.Bytes(), nil)
	})
}

// abort tells a run that nobody waits for its reply, from any goroutine.
func (t *thread) abort(r *run, why string) {
	t.tell(r, func(c *v8x.Call) { c.Reset(opAbort).Number(float64(r.id)).String(why) })
}

// listen has the run hear when its requester goes.
func (t *thread) listen(r *run) {
	if q := r.attempt.Event.Requester; q != nil {
		q.OnGone(func() { t.abort(r, "the requester has gone") })
	}
}

// deafen ends that.
func (r *run) deafen() {
	e := r.attempt.Event
	if e != nil && e.Requester != nil {
		e.Requester.OnGone(nil)
	}
	if e != nil && e.Halt != nil {
		e.Halt.On(nil)
	}
}

// heed ends the run when its event is not to run any more: at once when it waits, else when it does.
func (t *thread) heed(r *run) {
	if h := r.attempt.Event.Halt; h != nil {
		h.On(func() {
			t.postTo(r, func(t *thread) {
				if !r.over {
					t.stop(r, events.ReasonTimeout, "it was told to end")
				}
			})
		})
	}
}
