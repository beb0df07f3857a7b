package hostcalls

// value is a body that stays in Go in one piece: what a call of a binding brought, or what one is to store. It is
// charged to the run until something takes it, at the latest until the run ends.
type value struct {
	data []byte
	held int // bytes that are charged for it
}

const (
	leastKept = 64 << 10 // bytes: a shorter value enters JavaScript with its call
	keptShare = 2        // values that calls bring and that nothing has taken have at most 1/keptShare of the run's memory
)

// keep keeps a value under the id of the call that brought it. On the thread.
func (r *Calls) keep(id float64, v value) {
	if r.piped.kept == nil {
		r.piped.kept = map[float64]value{}
	}
	r.piped.kept[id] = v
}

// mayKeep reports whether a value that a call brought stays in Go. Those that JavaScript has forgotten stay until the
// run ends. So they get a share of its memory, and what is beyond it enters JavaScript, where garbage is collected.
func (r *Calls) mayKeep(n int) bool {
	all := n
	for _, v := range r.piped.kept {
		all += v.held
	}
	return n >= leastKept && all <= r.run.Limits().HeapMB<<20/keptShare
}

// take returns a value and forgets it. The caller gives back what it holds. On the thread.
func (r *Calls) take(id float64) (v value, ok bool) {
	v, ok = r.piped.kept[id]
	delete(r.piped.kept, id)
	return v, ok
}

// release gives a value up, if there is one. On the thread.
func (r *Calls) release(id float64) {
	if v, ok := r.take(id); ok {
		r.run.Drop(v.held)
	}
}
