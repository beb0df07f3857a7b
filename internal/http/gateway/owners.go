package gateway

import "sync"

// owners counts what the requests to the workers of each owner use.
type owners struct {
	requests int   // the most of an owner at the same time
	memory   int64 // bytes of bodies that wait, of all owners

	mu   sync.Mutex
	of   map[string]*usage // only owners that use something
	used int64             // part of memory
}

type usage struct {
	requests int
	bytes    int64
}

// enter takes a place for a request. It returns false when the owner has none left.
func (o *owners) enter(owner string) bool {
	return o.change(owner, func(u *usage) bool {
		if u.requests >= o.requests {
			return false
		}
		u.requests++
		return true
	})
}

func (o *owners) leave(owner string) {
	o.change(owner, func(u *usage) bool { u.requests--; return true })
}

// hold takes memory for a body. An owner may have as much as it leaves free. So owners that take all they can get have
// equal parts, and always leave one for another owner.
func (o *owners) hold(owner string, n int64) bool {
	return o.change(owner, func(u *usage) bool {
		if u.bytes+n > o.memory-o.used-n {
			return false
		}
		u.bytes += n
		o.used += n
		return true
	})
}

func (o *owners) drop(owner string, n int64) {
	o.change(owner, func(u *usage) bool { u.bytes -= n; o.used -= n; return true })
}

func (o *owners) change(owner string, f func(*usage) bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	u := o.of[owner]
	if u == nil {
		u = &usage{}
		o.of[owner] = u
	}
	ok := f(u)
	if *u == (usage{}) {
		delete(o.of, owner)
	}
	return ok
}
