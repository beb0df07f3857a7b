package isolates

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// spares keeps a few isolates ready, each with a context, so that the first event of a worker waits for neither. One
// goroutine makes them; threads take them and give them the limits they need.
type spares struct {
	ready chan *v8x.Isolate // its capacity is how many are kept
	want  chan struct{}     // capacity 1: there may be something to make
	stop  chan struct{}
	done  chan struct{} // closed when the maker has ended
	tid   atomic.Int32  // of the maker's thread, 0 before it has started
	lost  atomic.Bool   // V8 has parked the maker

	making       atomic.Int32 // threads that make an isolate themselves
	used, missed atomic.Uint64
}

func newSpares(cfg Config) *spares {
	return &spares{
		ready: make(chan *v8x.Isolate, cfg.spares()), want: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
}

// spares is how many isolates are kept ready. Most of the room is for those that workers are warm in.
func (c Config) spares() int { return min(c.SpareIsolates, (c.MaxIsolates-c.Threads-c.Background)/4) }

// spareLimits are those with which spares are made; SetLimits changes them.
var spareLimits = v8x.Limits{Heap: uint64(events.DefaultLimits.HeapMB) << 20, Buffers: uint64(events.DefaultLimits.HeapMB) << 20}

// isolate returns an isolate with limits l: a spare one, or else a new one. From threads.
func (s *spares) isolate(l v8x.Limits) *v8x.Isolate {
	select {
	case iso := <-s.ready:
		s.used.Add(1)
		s.nudge()
		if l != spareLimits {
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

func (s *spares) nudge() {
	select {
	case s.want <- struct{}{}:
	default:
	}
}

// spareNice is the priority of the maker's thread: it shall have what events leave of the processors.
const spareNice = 10

// run makes spares until stop is closed. V8's isolates may be made on one thread and used on another.
func (s *spares) run() {
	defer close(s.done)
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	tid := unix.Gettid()
	_ = unix.Setpriority(unix.PRIO_PROCESS, tid, spareNice)
	s.tid.Store(int32(tid))
	for {
		// A thread that makes one itself has an event waiting: it goes first.
		for len(s.ready) < cap(s.ready) && s.making.Load() == 0 {
			select {
			case <-s.stop:
				return
			default:
			}
			iso := v8x.NewIsolate(spareLimits)
			if iso.Prepare() != nil { // no memory: not now
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
func (s *spares) parked(tids []int) bool {
	return slices.Contains(tids, int(s.tid.Load())) && s.lost.CompareAndSwap(false, true)
}

// close stops the maker and frees what is left. No thread takes any more.
func (s *spares) close() {
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

// SpareStats says how the isolates that are made in advance are used.
type SpareStats struct {
	Ready  int    `json:"ready"`  // isolates that wait for a worker
	Used   uint64 `json:"used"`   // times that one was there when it was needed
	Missed uint64 `json:"missed"` // times that none was
}

func (s *spares) stats() SpareStats {
	return SpareStats{len(s.ready), s.used.Load(), s.missed.Load()}
}

func (s *SpareStats) add(o SpareStats) {
	s.Ready += o.Ready
	s.Used += o.Used
	s.Missed += o.Missed
}
