package isolates

import (
	"container/heap"
	"slices"
	"time"
)

// alarm is a moment at which something of a run is due: a timer of its JavaScript, or its end.
type alarm struct {
	at    time.Time
	order uint64 // alarms of the same moment ring in the order they were set
	run   *run
	timer float64 // id of the JavaScript timer; noTimer: the run's deadline
	act   func()  // instead of all that, for what is no run's
	off   bool    // cleared; left in the heap until its time
}

const noTimer = -1

// alarms is a heap by time.
type alarms struct {
	list  []*alarm
	order uint64
	dead  int // of the list, alarms that are off
}

// clear turns an alarm off. When most of the heap is off it is built anew, so that what is over is
// not kept in memory until its time.
func (a *alarms) clear(n *alarm) {
	if n == nil || n.off {
		return
	}
	n.off = true
	if a.dead++; a.dead < 1024 || a.dead < len(a.list)/2 {
		return
	}
	a.list = slices.DeleteFunc(a.list, func(n *alarm) bool { return n.off })
	a.dead = 0
	heap.Init(a)
}

func (a *alarms) set(at time.Time, r *run, timer float64) *alarm {
	a.order++
	n := &alarm{at: at, order: a.order, run: r, timer: timer}
	heap.Push(a, n)
	return n
}

// call sets an alarm that does something else than to tell a run.
func (a *alarms) call(at time.Time, act func()) *alarm {
	n := a.set(at, nil, noTimer)
	n.act = act
	return n
}

// due takes the next alarm whose time has come, or returns nil.
func (a *alarms) due(now time.Time) *alarm {
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

// next is when due may have something; zero when nothing is set.
func (a *alarms) next() time.Time {
	if len(a.list) == 0 {
		return time.Time{}
	}
	return a.list[0].at
}

// Len, Less, Swap, Push and Pop are heap.Interface.
func (a *alarms) Len() int { return len(a.list) }

func (a *alarms) Less(i, j int) bool {
	if !a.list[i].at.Equal(a.list[j].at) {
		return a.list[i].at.Before(a.list[j].at)
	}
	return a.list[i].order < a.list[j].order
}

func (a *alarms) Swap(i, j int) { a.list[i], a.list[j] = a.list[j], a.list[i] }

func (a *alarms) Push(x any) { a.list = append(a.list, x.(*alarm)) }

func (a *alarms) Pop() any {
	last := len(a.list) - 1
	n := a.list[last]
	a.list[last] = nil
	a.list = a.list[:last]
	return n
}
