package consumer

import (
	"sync/atomic"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
)

// demand is whether the lanes want more events than there is room for. Its methods may be called from any goroutine.
type demand struct {
	wake chan struct{} // wakes the puller
	// unmet is whether the last round of the puller granted less than the lanes want. Only then an event that leaves
	// lets it ask for more.
	unmet    atomic.Bool
	draining *atomic.Bool
}

// freed notes that there may be more room.
func (d *demand) freed() { jsapi.Signal(d.wake) }

// left notes that events have left.
func (d *demand) left() {
	if d.waits() {
		d.freed()
	}
}

// waits reports whether something waits for events to leave.
func (d *demand) waits() bool { return d.unmet.Load() || d.draining.Load() }
