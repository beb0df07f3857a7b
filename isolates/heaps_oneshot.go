package isolates

import "github.com/pinwheel-run/pinwheel/events/workers"

// An event of mode oneshot has an isolate of its own, which is closed after it.

// newInOwnIsolate makes a context in its own isolate. It returns nil if there is no room for one now.
func (h *heaps) newInOwnIsolate(w *workers.Worker, mode workers.Mode) (*jsContext, error) {
	if !h.makeRoom(w) {
		return nil, nil
	}
	return h.newContext(h.newIsolate(w, mode), w)
}

// sweep closes the isolates that have had their one event. It is called after the reply was sent.
func (h *heaps) sweep() {
	for _, iso := range h.spent {
		h.dropIsolate(iso)
	}
	clear(h.spent)
	h.spent = h.spent[:0]
}
