package isolates

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// prewarmed keeps a few isolates ready, each with a context, so that the first event of a worker waits for neither. One
// goroutine makes them. Threads take them and set the limits that they need.
type prewarmed struct {
	ready chan *v8x.Isolate // its capacity is the number of isolates to keep
	want  chan struct{}     // capacity 1: an isolate may be missing
	stop  chan struct{}
	done  chan struct{} // closed when the maker has ended
	tid   atomic.Int32  // of the maker's thread, 0 before it has started
	lost  atomic.Bool   // V8 has parked the maker

	making       atomic.Int32 // threads that make an isolate themselves
	used, missed atomic.Uint64
}

func newPrewarmed(cfg Config) *prewarmed {
	return &prewarmed{
		ready: make(chan *v8x.Isolate, cfg.prewarmed()), want: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
}

// prewarmed returns how many isolates are kept ready. Most of the room is for isolates that are warm for workers.
func (c Config) prewarmed() int {
	return min(c.SpareIsolates, (c.MaxIsolates-c.Threads-c.Background)/4)
}

// prewarmedLimits are the limits with which prewarmed isolates are made. SetLimits changes them.
var prewarmedLimits = v8x.Limits{Heap: uint64(workers.DefaultLimits.HeapMB) << 20,
	Buffers: uint64(workers.DefaultLimits.HeapMB) << 20}

// isolate returns an isolate with limits l: a prewarmed one, or a new one if none is ready. Called on threads.
func (s *prewarmed) isolate(l v8x.Limits) *v8x.Isolate {
	select {
	case iso := <-s.ready:
		s.used.Add(1)
		s.nudge()
		if l != prewarmedLimits {
			iso.SetLimits(l)
		}
		return iso
	default:
	}
	s.missed.Add(1)
	s.making.Add(1)
	defer func() {
		s.making.Add(-1)
		s.nudge()
	}()
	return v8x.NewIsolate(l)
}

func (s *prewarmed) nudge() {
	select {
	case s.want <- struct{}{}:
	default:
	}
}

// prewarmNice is the priority of the maker's thread. It gets the processor time that events leave.
const prewarmNice = 10

// run makes prewarmed isolates until stop is closed. V8's isolates may be made on one thread and used on another.
func (s *prewarmed) run() {
	defer close(s.done)
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	tid := unix.Gettid()
	_ = unix.Setpriority(unix.PRIO_PROCESS, tid, prewarmNice)
	s.tid.Store(int32(tid))
	for {
		// An event waits for a thread that makes an isolate itself: that thread goes first.
		for len(s.ready) < cap(s.ready) && s.making.Load() == 0 {
			select {
			case <-s.stop:
				return
			default:
			}
			iso := v8x.NewIsolate(prewarmedLimits)
			if iso.Prepare() != nil { // no memory: try again later
				iso.Close()
				break
			}
			s.ready <- iso
		}
		select {
		case <-s.stop:
			return
		case <-s.want:
		}
	}
}

// parked reports, once, that V8 has parked the maker.
func (s *prewarmed) parked(tids []int) bool {
	return slices.Contains(tids, int(s.tid.Load())) && s.lost.CompareAndSwap(false, true)
}

// close stops the maker and frees the isolates that are left. No thread takes isolates any more.
func (s *prewarmed) close() {
	close(s.stop)
	for waiting := true; waiting; {
		select {
		case <-s.done:
			waiting = false
		case <-time.After(tick):
			waiting = !s.lost.Load() && !s.parked(v8x.Parked()) // such a maker never ends
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case iso := <-s.ready:
			iso.Close()
		default:
			return
		}
	}
}

// PrewarmedStats reports how prewarmed isolates are used.
type PrewarmedStats struct {
	Ready  int    `json:"ready"`  // isolates that are ready
	Used   uint64 `json:"used"`   // times that one was ready when it was needed
	Missed uint64 `json:"missed"` // times that none was ready
}

func (s *prewarmed) stats() PrewarmedStats {
	return PrewarmedStats{len(s.ready), s.used.Load(), s.missed.Load()}
}

func (s *PrewarmedStats) add(o PrewarmedStats) {
	s.Ready += o.Ready
	s.Used += o.Used
	s.Missed += o.Missed
}
