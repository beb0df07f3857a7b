package consumer

import (
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// here reports whether a step of h may continue: h has not left, and is not about to.
func (h *entry) here() bool { return !h.is(aside) && !h.is(gone) && !h.is(orphaned) }

// maxTick is the maximum time that counts between two ticks: a process that stood still settled nothing.
const maxTick = time.Second

// countTime counts the time since the last call as time in which events could be settled.
func (t *inflight) countTime(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ticked.IsZero() {
		t.settleTime += max(0, min(now.Sub(t.ticked), maxTick))
	}
	t.ticked = now
}

// skipTime leaves out the time since the last call: without a connection nothing can be settled.
func (t *inflight) skipTime(now time.Time) {
	t.mu.Lock()
	t.ticked = now
	t.mu.Unlock()
}

// clock is the time that countTime has counted. It is never 0: in entry.settling, 0 means that h is not being settled.
func (t *inflight) clock() time.Duration { return t.settleTime + 1 }

// noteSettling notes when h began to be settled. mu is held.
func (t *inflight) noteSettling(h *entry) {
	if h.is(running) || h.is(waiting) {
		h.settling = 0
	} else if h.settling == 0 {
		h.settling = t.clock()
	}
}

// settling lists the events that have been checked, or settled, for at least so long. An ack ends with its lease. The
// event of a schedule that replaces others waits for their runs.
func (t *inflight) settling(least time.Duration) (list []*entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.list {
		if h.settling == 0 || t.clock()-h.settling < least || h.is(acking) || h.is(aside) || h.is(checking) &&
			h.event.Overlaps() == events.OverlapReplace {
			continue
		}
		list = append(list, h)
	}
	return list
}

// refusedFor is how long ago parking h was refused first, 0 for the first time.
func (t *inflight) refusedFor(h *entry) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.refused == 0 {
		h.refused = t.clock()
	}
	return t.clock() - h.refused
}
