package consumer

const (
	// outsideWindows is how many windows of events may wait for their dead letters outside of the window. It bounds the
	// leases that are renewed for them, and outsideBytes bounds their memory.
	outsideWindows, outsideBytes = 4, 64 << 20
	// outsideEach is about how many bytes such an event and its letter take in addition to its message.
	outsideEach = 2 << 10
)

// charge is what an event takes of the limits of the process.
type charge struct {
	places  int // in the window; does not change
	outside int // bytes, if it no longer takes a place; 0 = it does; see queueLetter; written under inflight.mu
}

// outside counts the events that are in flight and take no place in the window. inflight.mu guards it.
type outside struct{ events, bytes int }

// mostOutside is the maximum number of events outside of the window.
func (c Config) mostOutside() int { return outsideWindows * c.Window }

// queueLetter notes that h has ended and waits until its dead letter is written, for which there may be a long queue.
// From now on it takes no place in the window and no room of its lane, if few enough events wait like this. So an event
// of another owner behind it in the lane does not wait for the letter.
func (t *inflight) queueLetter(h *entry, most int) {
	t.mu.Lock()
	h.settling = 0
	size := outsideEach + h.event.Origin.HeaderBytes + len(h.event.Body)
	if !h.here() || h.outside > 0 || t.outside.events >= most || t.outside.bytes+size > outsideBytes {
		t.mu.Unlock()
		return
	}
	h.outside = size
	t.outside.events++
	t.outside.bytes += size
	t.places.Add(-int64(h.places))
	h.from.flow.ended(h.brief)
	h.from.flow.leaves(true)
	t.mu.Unlock()
	t.left(1)
}

// writesLetter notes that the letter of h is being written now. It returns false if h has left meanwhile.
func (t *inflight) writesLetter(h *entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !h.here() {
		return false
	}
	t.noteSettling(h)
	return true
}

// freed gives back what h took: its place and the room of its lane, or its room outside of the window. mu is held.
func (t *inflight) freed(h *entry, ended bool) {
	if h.outside > 0 {
		t.outside.events--
		t.outside.bytes -= h.outside
		return
	}
	h.from.flow.leaves(ended)
	t.places.Add(-int64(h.places))
}

// noteEnded notes in the flow of its lane that h has ended, unless queueLetter did.
func (h *entry) noteEnded() {
	if h.outside == 0 {
		h.from.flow.ended(h.brief)
	}
}
