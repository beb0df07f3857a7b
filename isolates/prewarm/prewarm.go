// Package prewarm keeps isolates ready for workers that have none.
package prewarm

import (
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Set keeps a few isolates ready, each with a context, so that the first event of a worker waits for neither. One
// goroutine makes them. Threads take them and set the limits that they need.
type Set struct {
	ready chan *v8x.Isolate // its capacity is the number of isolates to keep
	want  chan struct{}     // capacity 1: an isolate may be missing
	stop  chan struct{}
	done  chan struct{} // closed when the maker has ended
	tid   atomic.Int32  // of the maker's thread, 0 before it has started
	lost  atomic.Bool   // V8 has parked the maker

	making       atomic.Int32 // threads that make an isolate themselves
	used, missed atomic.Uint64
}

// New makes a set of n isolates; Run fills it.
func New(n int) *Set {
	return &Set{
		ready: make(chan *v8x.Isolate, n), want: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
}

// limits are the limits with which prewarmed isolates are made. SetLimits changes them.
var limits = v8x.Limits{Heap: uint64(workers.DefaultLimits.HeapMB) << 20,
	Buffers: uint64(workers.DefaultLimits.HeapMB) << 20}

// Isolate returns an isolate with limits l: a prewarmed one, or a new one if none is ready. Called on threads.
func (s *Set) Isolate(l v8x.Limits) *v8x.Isolate {
	select {
	case iso := <-s.ready:
		s.used.Add(1)
		s.signal()
		if l != limits {
			iso.SetLimits(l)
		}
		return iso
	default:
	}
	s.missed.Add(1)
	s.making.Add(1)
	defer func() {
		s.making.Add(-1)
		s.signal()
	}()
	return v8x.NewIsolate(l)
}

func (s *Set) signal() {
	select {
	case s.want <- struct{}{}:
	default:
	}
}

// prewarmNice is the priority of the maker's thread. It gets the processor time that events leave.
const prewarmNice = 10

// Run makes prewarmed isolates until stop is closed. V8's isolates may be made on one thread and used on another.
func (s *Set) Run() {
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
			iso := v8x.NewIsolate(limits)
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

// Parked reports, once, that V8 has parked the maker.
func (s *Set) Parked(tids []int) bool {
	return slices.Contains(tids, int(s.tid.Load())) && s.lost.CompareAndSwap(false, true)
}

// closeTick is the interval at which Close asks whether V8 has parked the maker.
const closeTick = 5 * time.Millisecond

// Close stops the maker and frees the isolates that are left. All threads have ended.
func (s *Set) Close() {
	close(s.stop)
	for waiting := true; waiting; {
		select {
		case <-s.done:
			waiting = false
		case <-time.After(closeTick):
			waiting = !s.lost.Load() && !s.Parked(v8x.Parked()) // such a maker never ends
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

// Stats reports how prewarmed isolates are used.
type Stats struct {
	Ready  int    `json:"ready"`  // isolates that are ready
	Used   uint64 `json:"used"`   // times that one was ready when it was needed
	Missed uint64 `json:"missed"` // times that none was ready
}

// Stats returns the figures of the set.
func (s *Set) Stats() Stats {
	return Stats{len(s.ready), s.used.Load(), s.missed.Load()}
}

// Add adds the figures of another process.
func (s *Stats) Add(o Stats) {
	s.Ready += o.Ready
	s.Used += o.Used
	s.Missed += o.Missed
}
