package v8x

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The ways in which threads get an isolate for an event. According to the documents on which Pinwheel is based, a pool
// whose isolates are shared under V8's lock is worse than no pool when many threads need few isolates, and pinned
// isolates are not.
const (
	pinned = "pinned" // each thread has its own isolate
	locker = "locker" // all share one, and wait for V8's lock at each call
	held   = "held"   // all share one, and a thread keeps it until its event is over, waits included
	fresh  = "fresh"  // each event has a new isolate: no pool
)

// contended is the work of one event: calls, with a wait between two of them.
type contended struct {
	name, code string
	calls      int
	wait       time.Duration
}

func contendedWork() []contended {
	return []contended{
		{"echo", `text => { const x = JSON.parse(text); return JSON.stringify({ ok: true, id: x.id, items: x.items.length }) }`, 1, 0},
		{"cpu", `() => { let x = 1; for (let i = 0; i < 450_000; i++) { x ^= x << 13; x ^= x >>> 17; x ^= x << 5 } return String(x) }`, 1, 0}, // about 1 ms
		{"io", `text => JSON.stringify(JSON.parse(text))`, 2, 5 * time.Millisecond},
	}
}

// BenchmarkLocker compares the ways under contention, with the lock of V8 itself: every Call takes it, and in all other
// benchmarks and in the fleet it is free. Threads here block while their event waits: those of the fleet take other
// events.
//
//	go test -run '^$' -bench Locker -benchtime 500ms -count 6 ./isolates/v8x >locker.txt
//	go tool benchstat -col /way -row /work,/threads -filter '.unit:(events/s OR cpu-µs/event)' locker.txt
func BenchmarkLocker(b *testing.B) {
	require.NoError(b, start())
	for _, work := range contendedWork() {
		for _, threads := range []int{1, 2, 8} {
			for _, way := range []string{pinned, locker, held, fresh} {
				b.Run(fmt.Sprintf("work=%s/threads=%d/way=%s", work.name, threads, way),
					func(b *testing.B) { contend(b, work, threads, way) })
			}
		}
	}
}

// contend has threads run b.N events.
func contend(b *testing.B, work contended, threads int, way string) {
	var one *Isolate
	if way == locker || way == held {
		one = NewIsolate(roomy)
		defer one.Close()
	}
	var (
		left                 atomic.Int64
		mine                 sync.Mutex // held to use the isolate, and to make a context
		ready, done, leaving sync.WaitGroup
		begin, leave         = make(chan struct{}), make(chan struct{})
	)
	left.Store(int64(b.N))
	ready.Add(threads)
	done.Add(threads)
	for range threads {
		leaving.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			s := &seat{b: b, work: work, way: way, iso: one, mine: &mine}
			mine.Lock()
			s.sit()
			mine.Unlock()
			ready.Done()
			<-begin
			for left.Add(-1) >= 0 {
				s.event()
			}
			done.Done()
			<-leave
			mine.Lock()
			s.leave()
			mine.Unlock()
		})
	}
	ready.Wait()
	cpu := used()
	b.ResetTimer()
	close(begin)
	done.Wait()
	b.StopTimer()
	cpu = used() - cpu
	close(leave)
	leaving.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(cpu.Nanoseconds())/1e3/float64(b.N), "cpu-µs/event")
	b.ReportMetric(0, "ns/op")
}

// seat is the state of one thread.
type seat struct {
	b    *testing.B
	work contended
	way  string
	iso  *Isolate // nil: the thread has its own
	own  *Isolate
	ctx  *Context // always its own: the result of a call belongs to the context
	mine *sync.Mutex
	call Call
}

var contendedBody = `{"id":7,"items":[1,2,3],"note":"` + strings.Repeat("n", 1000) + `"}`

func (s *seat) sit() {
	iso := s.iso
	if iso == nil {
		s.own = NewIsolate(roomy)
		iso = s.own
	}
	var err error
	if s.ctx, err = iso.NewContext(nil); err != nil {
		s.b.Error(err)
	}
	if state, r := s.ctx.Module(Source{Name: "m.js", Text: "export default " + s.work.code}); state != Evaluated {
		s.b.Error(state, r.Err)
	}
}

func (s *seat) leave() {
	s.ctx.Close()
	if s.own != nil {
		s.own.Close()
	}
}

// event runs one event.
func (s *seat) event() {
	switch s.way {
	case held:
		s.mine.Lock()
		defer s.mine.Unlock()
	case fresh:
		s.leave()
		s.sit()
	}
	for i := range s.work.calls {
		if i > 0 {
			time.Sleep(s.work.wait)
		}
		if r := s.ctx.Call(s.call.Reset(50).String(contendedBody).Bytes(), nil); r.Err != nil || len(r.Out) == 0 {
			s.b.Error("a call failed:", r.Err)
		}
	}
}

// used returns the CPU time of this process.
func used() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
