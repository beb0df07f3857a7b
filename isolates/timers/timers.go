// Package timers has timers that fire at a moment, without a goroutine or a timer of Go for each.
package timers

import (
	"container/heap"
	"slices"
	"time"
)

// Timer fires at a moment. It is of an R, or has a function.
type Timer[R any] struct {
	at    time.Time
	order uint64  // timers of the same moment fire in the order they were set
	Of    R       // whose it is; the zero value if Act is not nil
	ID    float64 // its id among those of Of
	Act   func()  // what it does; nil = the caller of Due knows
	off   bool    // cleared; left in the heap until its time
}

// List is a heap of timers ordered by time. Its zero value is ready.
type List[R any] struct {
	list  []*Timer[R]
	order uint64
	dead  int // number of timers in the list that are off
}

// Clear turns a timer off. When most timers in the heap are off, the heap is rebuilt. So timers that are off are not
// kept in memory until their time.
func (a *List[R]) Clear(n *Timer[R]) {
	if n == nil || n.off {
		return
	}
	n.off = true
	if a.dead++; a.dead < 1024 || a.dead < len(a.list)/2 {
		return
	}
	a.list = slices.DeleteFunc(a.list, func(n *Timer[R]) bool { return n.off })
	a.dead = 0
	heap.Init(a)
}

// Set sets a timer of an R.
func (a *List[R]) Set(at time.Time, of R, id float64) *Timer[R] {
	a.order++
	n := &Timer[R]{at: at, order: a.order, Of: of, ID: id}
	heap.Push(a, n)
	return n
}

// Call sets a timer that calls act.
func (a *List[R]) Call(at time.Time, act func()) *Timer[R] {
	var none R
	n := a.Set(at, none, 0)
	n.Act = act
	return n
}

// Due removes and returns the next timer whose time has come, or returns nil.
func (a *List[R]) Due(now time.Time) *Timer[R] {
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

// Next returns the time at which Due may return something. It is zero when no timer is set.
func (a *List[R]) Next() time.Time {
	if len(a.list) == 0 {
		return time.Time{}
	}
	return a.list[0].at
}

// Empty reports whether no timer is set.
func (a *List[R]) Empty() bool { return len(a.list) == 0 }

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (a *List[R]) Len() int { return len(a.list) }

func (a *List[R]) Less(i, j int) bool {
	if !a.list[i].at.Equal(a.list[j].at) {
		return a.list[i].at.Before(a.list[j].at)
	}
	return a.list[i].order < a.list[j].order
}

func (a *List[R]) Swap(i, j int) { a.list[i], a.list[j] = a.list[j], a.list[i] }

func (a *List[R]) Push(x any) { a.list = append(a.list, x.(*Timer[R])) }

func (a *List[R]) Pop() any {
	last := len(a.list) - 1
	n := a.list[last]
	a.list[last] = nil
	a.list = a.list[:last]
	return n
}
