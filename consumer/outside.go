package consumer

import (
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

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

// die queues the dead letter of h. Letters are written in rounds, in which the owners take turns.
func (s *settler) die(h *entry, o lifecycle.Outcome) {
	s.inflight.move(h, storing)
	d := s.letter(h, o)
	s.inflight.queueLetter(h, s.cfg.mostOutside())
	s.letterRounds.Add(h.event.Owner, func(answered func()) {
		waits := true
		s.writeLetter(h, d, func() {
			if waits {
				waits = false
				answered()
			}
		})
	})
}

// writeLetter writes d, the dead letter of h, unless h has ended elsewhere. It calls answered, more than once perhaps,
// when JetStream has answered or nothing is written.
func (s *settler) writeLetter(h *entry, d *events.DeadLetter, answered func()) {
	if !s.inflight.writesLetter(h) {
		answered()
		return
	}
	goOn := func() bool { // the first try has failed
		answered()
		return h.here()
	}
	unwritable := h.event.HeadersLost() || h.event.Header.CheckWritable() != nil
	write := func(m *stored.Message) {
		if unwritable {
			keepBlock(d, h, m)
		}
		s.letters.Write(&h.event.Event, d, goOn, func(written *events.DeadLetter, err error) {
			answered()
			if err != nil {
				s.cannotStoreLetter(h)
				return
			}
			s.deadLetterStored(h, written)
		})
	}
	if unwritable || s.mayHaveMoved(h) {
		s.ifStillStored(h, jsapi.NewRetrier(0), write, answered)
		return
	}
	write(nil)
}

// tickRounds begins the rounds whose time has come.
func (s *settler) tickRounds(now time.Time) {
	s.parker.Round(now)
	s.letterRounds.Tick(now)
}
