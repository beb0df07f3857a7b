package isolates

import (
	"container/heap"
	"slices"
	"time"
)

// timer fires at a moment: a timer of a run's JavaScript, or the run's limit.
type timer struct {
	at    time.Time
	order uint64 // timers of the same moment fire in the order they were set
	run   *run
	jsID  float64 // id of the JavaScript timer; noTimer: the run's deadline
	act   func()  // called instead, for a timer that belongs to no run
	off   bool    // cleared; left in the heap until its time
}

const noTimer = -1

// timers is a heap ordered by time.
type timers struct {
	list  []*timer
	order uint64
	dead  int // number of timers in the list that are off
}

// clear turns a timer off. When most timers in the heap are off, the heap is rebuilt. So timers that are off are not
// kept in memory until their time.
func (a *timers) clear(n *timer) {
	if n == nil || n.off {
		return
	}
	n.off = true
	if a.dead++; a.dead < 1024 || a.dead < len(a.list)/2 {
		return
	}
	a.list = slices.DeleteFunc(a.list, func(n *timer) bool { return n.off })
	a.dead = 0
	heap.Init(a)
}

func (a *timers) set(at time.Time, r *run, jsID float64) *timer {
	a.order++
	n := &timer{at: at, order: a.order, run: r, jsID: jsID}
	heap.Push(a, n)
	return n
}

// call sets a timer that calls act.
func (a *timers) call(at time.Time, act func()) *timer {
	n := a.set(at, nil, noTimer)
	n.act = act
	return n
}

// due removes and returns the next timer whose time has come, or returns nil.
func (a *timers) due(now time.Time) *timer {
	for len(a.list) > 0 {
		n := a.list[0]
		if !n.off && n.at.After(now) {
			return nil
		}
		heap.Pop(a)
		if !n.off {
			n.off = true
			return n
		}
		a.dead = max(0, a.dead-1)
	}
	return nil
}

// next returns the time at which due may return something. It is zero when no timer is set.
func (a *timers) next() time.Time {
	if len(a.list) == 0 {
		return time.Time{}
	}
	return a.list[0].at
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (a *timers) Len() int { return len(a.list) }

func (a *timers) Less(i, j int) bool {
	if !a.list[i].at.Equal(a.list[j].at) {
		return a.list[i].at.Before(a.list[j].at)
	}
	return a.list[i].order < a.list[j].order
}

func (a *timers) Swap(i, j int) { a.list[i], a.list[j] = a.list[j], a.list[i] }

func (a *timers) Push(x any) { a.list = append(a.list, x.(*timer)) }

func (a *timers) Pop() any {
	last := len(a.list) - 1
	n := a.list[last]
	a.list[last] = nil
	a.list = a.list[:last]
	return n
}
