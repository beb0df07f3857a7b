package isolates

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/isolates/compression"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
	"github.com/pinwheel-run/pinwheel/isolates/webcrypto"
)

// maxOffloads is how many operations of a run may be elsewhere at once.
const maxOffloads = 256

// offload runs what takes too long for a pinned thread, in goroutines: at most `free` at once for the process, and owners in
// turn, so that one who has much to compute slows nobody but himself. Safe for use by any goroutine.
type offload struct {
	mu      sync.Mutex
	free    int
	jobs    map[string][]func() // by owner; none is empty
	turns   []string            // the owners of jobs, who is next first
	running sync.WaitGroup

	compressors compression.Compressors
}

func newOffload(workers int) *offload {
	return &offload{free: workers, jobs: map[string][]func(){}}
}

// submit has f run soon.
func (o *offload) submit(owner string, f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.free > 0 {
		o.free--
		o.running.Go(func() { o.work(f) })
		return
	}
	if len(o.jobs[owner]) == 0 {
		o.turns = append(o.turns, owner)
	}
	o.jobs[owner] = append(o.jobs[owner], f)
}

// work does f and then what waits, until nothing does.
func (o *offload) work(f func()) {
	for f != nil {
		f()
		f = o.next()
	}
}

func (o *offload) next() func() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.turns) == 0 {
		o.free++
		return nil
	}
	owner := o.turns[0]
	o.turns = o.turns[1:]
	list := o.jobs[owner]
	if len(list) == 1 {
		delete(o.jobs, owner)
	} else {
		o.jobs[owner] = list[1:]
		o.turns = append(o.turns, owner)
	}
	return list[0]
}

// meter says whether work may go on: its run must not be over, nor have used up its CPU time.
type meter struct {
	ctx    context.Context
	budget time.Duration
	begun  time.Duration
	waits  bool // the work is done by others, who measure themselves
}

var errBudget = errors.New("the CPU time of the event is used up")

func (m *meter) goOn() error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	if ownCPU()-m.begun > m.budget {
		return errBudget
	}
	return nil
}

// ownCPU is the CPU time that the calling thread has used.
func ownCPU() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// job is work for elsewhere. What it used of other threads' CPU time it gives beside its product. It may ask goOn whether
// to go on.
type job func(goOn func() error) (product, time.Duration)

// elsewhere does work that takes long for call c of r, and answers when it is done. The CPU time it took is the run's. n is
// how many bytes the work holds, with those it makes, from when begin makes it; waits says that others do it, who measure themselves.
func (t *thread) elsewhere(r *run, c *call, n int, waits bool, begin func() job) {
	o, owner := t.pool.offload, r.attempt.Worker.Owner
	err := fmt.Errorf("too much at once: at most %d operations", maxOffloads)
	if r.offloads < maxOffloads {
		err = t.pool.hold(r, n)
	}
	if err != nil {
		t.answer(r, c, true, worked(c, product{err: err}))
		return
	}
	r.offloads++
	work := begin()
	m := meter{ctx: r.context(), budget: r.cpuLeft, waits: waits}
	o.submit(owner, func() {
		p, used := m.measure(work)
		t.pool.metrics.offloaded.Inc()
		t.pool.metrics.offloadCPU.Add(used.Seconds())
		t.postTo(r, func(t *thread) {
			t.pool.drop(r, n) // before the answer: what comes next may hold as much
			t.worked(r, c, p, used)
		})
	})
}

// here does work that takes no longer than handing it over would, on the thread. Its answer comes like that of the others.
func (t *thread) here(r *run, c *call, work job) {
	r.offloads++
	p, used := try(work, always)
	t.postTo(r, func(t *thread) { t.worked(r, c, p, used) })
}

// measure does the work on a thread of its own, unless its run is over already.
func (m *meter) measure(work job) (p product, used time.Duration) {
	if err := m.ctx.Err(); err != nil {
		return product{err: err}, 0
	}
	if m.waits { // and a goroutine that waits should not do so with a thread of its own
		return work(always)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m.begun = ownCPU()
	return try(work, m.goOn)
}

// try does work on the calling thread, which it must not leave. A panic is a failure of the operation.
func try(work job, goOn func() error) (p product, used time.Duration) {
	began := ownCPU()
	defer func() {
		used += ownCPU() - began
		if failed := recover(); failed != nil {
			p = product{err: fmt.Errorf("the operation failed: %v", failed)}
		}
	}()
	return work(goOn)
}

// worked takes up what was done elsewhere.
func (t *thread) worked(r *run, c *call, p product, used time.Duration) {
	if r.over {
		return
	}
	r.offloads--
	t.charge(r, used)
	if r.over || r.cpuLeft < 0 || r.guest.closed {
		return
	}
	if !time.Now().Before(r.wall) { // that the run is too late ended the work as well: the alarm that says so is about to ring
		return
	}
	if r.calls[c.id] != c {
		return
	}
	delete(r.calls, c.id)
	body := worked(c, p)(&t.call)
	t.turn(r, t.call.Bytes(), body)
}

func worked(c *call, p product) func(*v8x.Call) []byte {
	return func(call *v8x.Call) []byte {
		call.Reset(opWorked).Number(c.id)
		return p.deliver(call)
	}
}

// subtle begins an operation of crypto.subtle that takes long.
func (t *thread) subtle(r *run, in *v8x.Commands) {
	c := r.register(in.Number())
	op := int(in.Int())
	if op == subtleRSAGenerate {
		peek := *in
		if need := webcrypto.LeastToGenerate(int(peek.Int())); r.cpuLeft < need {
			t.answer(r, c, true, worked(c, product{err: fmt.Errorf(
				"making such a key takes %s of CPU time and more, and the event has %s left: see limits.cpuMs", need, max(0, r.cpuLeft.Round(time.Millisecond)))}))
			return
		}
	}
	t.elsewhere(r, c, 2*in.Left(), false, func() job {
		args := in.Detach()
		return func(goOn func() error) (product, time.Duration) { return subtleWork(op, &args, goOn), 0 }
	})
}
