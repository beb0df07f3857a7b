package isolates

import (
	constanttime "crypto/subtle"
	"fmt"
	"time"

	"github.com/pinwheel-run/pinwheel/isolates/offload"
	"github.com/pinwheel-run/pinwheel/isolates/offload/charset"
	"github.com/pinwheel-run/pinwheel/isolates/offload/subtle"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// maxOffloads is how many operations of a run may be under way elsewhere at once.
const maxOffloads = 256

// offloads is the work of a run outside its thread.
type offloads struct {
	n int // operations under way
}

// elsewhere does work that takes long, for call c of r, outside the thread. It answers when the work is done. The CPU
// time is charged to the run. n is the number of bytes that the work holds, including those that it produces, from the
// moment begin makes it. waits says that others do the work and measure its CPU time themselves.
func (o *offloads) elsewhere(t *thread, r *run, c *call, n int, waits bool, begin func() offload.Job) {
	owner := r.attempt.Worker.Owner
	err := fmt.Errorf("too much at once: at most %d operations", maxOffloads)
	if o.n < maxOffloads {
		err = t.pool.hold(r, n)
	}
	if err != nil {
		t.answer(r, c, true, worked(c, offload.Failed(err)))
		return
	}
	o.n++
	work := begin()
	m := offload.Meter{Context: r.callContext(), Budget: r.cpuLeft, Waits: waits}
	t.pool.offload.Submit(owner, func() {
		p, used := m.Do(work)
		t.pool.metrics.offloaded.Inc()
		t.pool.metrics.offloadCPU.Add(used.Seconds())
		t.postTo(r, func(t *thread) {
			t.pool.drop(r, n) // before the answer: the next operation may hold as much
			o.worked(t, r, c, p, used)
		})
	})
}

// here does work on the thread that takes no longer than handing it over would. The answer comes in the same way as
// from elsewhere.
func (o *offloads) here(t *thread, r *run, c *call, work offload.Job) {
	o.n++
	p, used := offload.Try(work, offload.Always)
	t.postTo(r, func(t *thread) { o.worked(t, r, c, p, used) })
}

// worked handles the result of work that was done elsewhere.
func (o *offloads) worked(t *thread, r *run, c *call, p offload.Product, used time.Duration) {
	if r.over {
		return
	}
	o.n--
	t.charge(r, used)
	if r.over || r.cpuLeft < 0 || r.context.closed {
		return
	}
	// The run's time limit ended the work as well. The timer for that limit is about to fire.
	if !time.Now().Before(r.wall) {
		return
	}
	if r.calls[c.id] != c {
		return
	}
	delete(r.calls, c.id)
	body := worked(c, p)(&t.call)
	t.turn(r, t.call.Bytes(), body)
}

func worked(c *call, p offload.Product) func(*v8x.Call) []byte {
	return func(call *v8x.Call) []byte {
		call.Reset(opWorked).Number(c.id)
		return p.Deliver(call)
	}
}

// subtle starts an operation of crypto.subtle that takes long.
func (o *offloads) subtle(t *thread, r *run, in *v8x.Commands) {
	c := r.register(in.Number())
	op := int(in.Int())
	if need := subtle.Need(op, *in); r.cpuLeft < need {
		t.answer(r, c, true, worked(c, offload.Failed(fmt.Errorf(
			"making such a key takes %s of CPU time and more, and the event has %s left: see limits.cpuMs", need, max(0, r.cpuLeft.Round(time.Millisecond))))))
		return
	}
	o.elsewhere(t, r, c, 2*in.Left(), false, func() offload.Job {
		args := in.Detach()
		return func(goOn func() error) (offload.Product, time.Duration) { return subtle.Work(op, &args, goOn), 0 }
	})
}

// answer is the v8x.HostFunc of every context. It has pure functions that exist in Go and that JavaScript needs at
// once.
func answer(in []byte) ([]byte, error) {
	q := v8x.ReadCommands(in)
	op, _ := q.Next()
	switch op {
	case askSubtle:
		return subtle.Now(&q).Answer(), nil
	case askDecode:
		return decodeLegacy(q.Text(), int(q.Int()), q.View(), q.Bool(), q.Bool())
	case askTimingSafeEqual:
		a := q.View()
		return v8x.AnswerBool(constanttime.ConstantTimeCompare(a, q.View()) == 1), nil
	case askDomainToASCII:
		return v8x.AnswerString(domainToASCII(q.Text())), nil
	}
	return nil, fmt.Errorf("host.ask: unknown op %d", op)
}

// decodeLegacy decodes a piece of text in one of the legacy encodings. The answer has two strings. The first is the
// text. The code units of the second are the number of incomplete bytes at the end, and the state to continue with. The
// answer is null if the bytes are not valid and fatal is true.
func decodeLegacy(encoding string, state int, in []byte, last, fatal bool) ([]byte, error) {
	r, err := charset.Decode(encoding, state, in, last)
	if err != nil {
		return nil, err
	}
	if r.Wrong && fatal {
		return v8x.AnswerNull(), nil
	}
	return v8x.AnswerTexts(string(r.Text), string([]rune{rune(r.Rest), rune(r.State)})), nil
}
