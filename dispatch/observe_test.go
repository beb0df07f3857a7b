package dispatch

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// witness notes what it sees.
type witness struct{ saw []string }

func (w *witness) note(what string, e *lifecycle.Delivery) {
	w.saw = append(w.saw, fmt.Sprintf("%s %s", what, e.ID))
}

func (w *witness) Delivered(e *lifecycle.Delivery) { w.note("delivered", e) }
func (w *witness) Queued(e *lifecycle.Delivery)    { w.note("queued", e) }
func (w *witness) Started(a *lifecycle.Attempt)    { w.note("started", a.Event) }
func (w *witness) Replied(r *lifecycle.Report)     { w.note("replied", r.Attempt.Event) }
func (w *witness) Ended(r *lifecycle.Report)       { w.note("ended", r.Attempt.Event) }
func (w *witness) Cancelled(*lifecycle.Delivery)   {}

func (w *witness) Settled(s *lifecycle.Settlement) {
	w.note("settled "+s.String(), s.Event)
}

// An observer sees each event on its way, in this order. One that was removed sees nothing.
func TestObserver(t *testing.T) {
	t.Parallel()
	w, observers := &witness{}, &lifecycle.Observers{}
	observers.Add(w)
	observers.Add(w)
	d, _ := newDispatcher(t, Config{Threads: 1, Observers: observers})
	d.Install(workers.Only(worker("o", "w")))
	e, _ := direct("o", "w")
	stored := task("o", "w", 7)
	stored.ID = "s"
	d.Submit([]*lifecycle.Delivery{e})
	d.Report(0, []lifecycle.Report{{Attempt: d.Next(0, 1)[0], Reply: &events.Reply{Status: 200}}})
	require.Equal(t, []string{"delivered d", "queued d", "started d", "replied d", "settled none d"}, w.saw)
	w.saw = nil
	d.Submit([]*lifecycle.Delivery{stored})
	a := d.Next(0, 1)[0]
	d.Report(0, []lifecycle.Report{{Attempt: a, Reply: &events.Reply{}, End: &lifecycle.End{Started: true}}})
	require.Equal(t, []string{"queued s", "started s", "replied s", "ended s", "settled ack s"}, w.saw)

	w.saw = nil
	observers.Remove(w)
	require.Empty(t, observers.All())
	d.Submit([]*lifecycle.Delivery{stored})
	require.Empty(t, w.saw)
}
