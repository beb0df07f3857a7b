package hostcalls

import (
	"fmt"
	"time"

	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/offload"
	"github.com/pinwheel-run/pinwheel/isolates/offload/subtle"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// MaxOffloads is how many operations of a run may be under way elsewhere at once.
const MaxOffloads = 256

// offloads is the work of a run outside its thread.
type offloads struct {
	n int // operations under way
}

// inPool does work that takes long, for call c of r, outside the thread. It answers when the work is done. The CPU
// time is charged to the run. n is the number of bytes that the work holds, including those that it produces, from the
// moment begin makes it. waits says that others do the work and measure its CPU time themselves.
func (o *offloads) inPool(r *Calls, c *call, n int, waits bool, begin func() offload.Job) {
	owner := r.run.Attempt().Worker.Owner
	err := fmt.Errorf("too much at once: at most %d operations", MaxOffloads)
	if o.n < MaxOffloads {
		err = r.run.Hold(n)
	}
	if err != nil {
		r.answer(c, true, worked(c, offload.Failed(err)))
		return
	}
	o.n++
	work := begin()
	m := offload.Meter{Context: r.callContext(), Budget: r.run.CPULeft(), Waits: waits}
	r.process.Offload.Submit(owner, func() {
		p, used := m.Do(work)
		r.process.Offloaded.Add(1)
		r.process.OffloadCPU.Add(int64(used))
		r.run.Later(func() {
			r.run.Drop(n) // before the answer: the next operation may hold as much
			o.worked(r, c, p, used)
		})
	})
}

// onThread does work on the thread that takes no longer than handing it over would. The answer comes in the same way as
// from elsewhere.
func (o *offloads) onThread(r *Calls, c *call, work offload.Job) {
	o.n++
	p, used := offload.Try(work, offload.Always)
	r.run.Later(func() { o.worked(r, c, p, used) })
}

// worked handles the result of work that was done elsewhere.
func (o *offloads) worked(r *Calls, c *call, p offload.Product, used time.Duration) {
	if r.over {
		return
	}
	o.n--
	r.run.Charge(used)
	if r.over || r.run.CPULeft() < 0 || r.run.Closed() {
		return
	}
	// The run's time limit ended the work as well. The timer for that limit is about to fire.
	if !time.Now().Before(r.run.Deadline()) {
		return
	}
	c.deliver(r, true, worked(c, p))
}

func worked(c *call, p offload.Product) func(*v8x.Call) []byte {
	return func(call *v8x.Call) []byte {
		call.Reset(js.OpWorked).Number(c.id)
		return p.Deliver(call)
	}
}

// subtle starts an operation of crypto.subtle that takes long.
func (o *offloads) subtle(r *Calls, in *v8x.Commands) {
	c := r.register(in.Number())
	op := int(in.Int())
	need, memory := subtle.Need(op, *in)
	if r.run.CPULeft() < need {
		r.answer(c, true, worked(c, offload.Failed(fmt.Errorf(
			"the operation takes %s of CPU time and more, and the event has %s left: see limits.cpuMs", need, max(0, r.run.CPULeft().Round(time.Millisecond))))))
		return
	}
	o.inPool(r, c, 2*in.Left()+memory, false, func() offload.Job {
		args := in.Detach()
		return func(goOn func() error) (offload.Product, time.Duration) { return subtle.Work(op, &args, goOn), 0 }
	})
}
