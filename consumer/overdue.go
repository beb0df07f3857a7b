package consumer

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers/catalog"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

const (
	// asideFor is how long an event that is set aside stays in its stream before it is delivered again.
	asideFor = 30 * time.Minute
	// strangersWithin is how long events of owners without workers may take to settle when they have more than their
	// share of the window, which is 1/strangersPart of it for all these owners together.
	strangersWithin, strangersPart = 5 * time.Second, 16
	// overdueEvery is the number of settleTicks between two looks for events that are overdue.
	overdueEvery = 20
)

// overdue sets events aside that could not be settled for long, so that no event holds its place in the window forever:
// the event leaves the process, and stays in its stream. Its methods run on the settle goroutine, except Lately.
type overdue struct {
	*settler
	catalog *catalog.Catalog
	ticks   int
	count   prometheus.Counter
	some    atomic.Int64 // set aside without an hour between two of them
	last    atomic.Int64 // when the last one was, Unix time in seconds
}

// tick counts the time since the last tick, and looks now and then.
func (o *overdue) tick(now time.Time) {
	if !o.api.NC.IsConnected() {
		o.inflight.skipTime(now)
		return
	}
	o.inflight.countTime(now)
	if o.ticks++; o.ticks%overdueEvery != 0 || guard.WritableHeaders.Off() {
		return
	}
	for _, h := range o.inflight.settling(o.cfg.SettleWithin) {
		o.setAside(h)
	}
	o.strangers()
}

// strangers sets aside what owners without workers have beyond their share. While no owner has workers, nobody needs
// the places.
func (o *overdue) strangers() {
	if o.catalog.Empty() {
		return
	}
	share := max(1, o.cfg.Window/strangersPart)
	for _, h := range o.inflight.settling(strangersWithin) {
		if o.catalog.HasWorkers(h.event.Owner) {
			continue
		}
		if share -= h.places; share < 0 {
			o.setAside(h)
		}
	}
}

// setAside gives h back to its stream for asideFor. Nothing is lost: h is then delivered again, and settled or set
// aside again.
func (o *overdue) setAside(h *entry) {
	was := state(h.state.Load())
	if !o.inflight.move(h, aside) {
		return
	}
	o.count.Inc()
	o.note(time.Now())
	o.api.Repeats.Error(nil, "event could not be settled: it is set aside, stays in its stream and is delivered again").
		Str("event", h.event.ID).Str("worker", h.event.Target()).Str("stream", h.from.stream).
		Uint64("seq", h.event.Origin.Seq).
		Stringer("state", was).Stringer("again_in", asideFor).Send()
	if h.recorded().Moving == nil { // else this delivery is counted already
		h.noteReturned()
	}
	o.save(h, func() { o.nakFor(h, asideFor) })
}

// cannotPark handles an event that JetStream refused to park. An event that can never be parked ends. One that was
// refused for long is set aside, in case dispatch never has room for it.
func (o *overdue) cannotPark(h *entry, err error) {
	switch {
	case !h.here():
	case jsapi.IsUnfit(err):
		o.refuse(h, events.Fail(events.ReasonMalformed, "the event cannot be parked: %v", err))
	case o.inflight.refusedFor(h) > o.cfg.SettleWithin:
		o.setAside(h)
	default:
		o.decideAgain(h)
	}
}

// note counts an event that is set aside.
func (o *overdue) note(now time.Time) {
	if now.Unix()-o.last.Swap(now.Unix()) > int64(time.Hour.Seconds()) {
		o.some.Store(0)
	}
	o.some.Add(1)
}

// Lately is how many events were set aside, if the last one was in the last hour. Any goroutine may call it.
func (o *overdue) Lately() int64 {
	if time.Now().Unix()-o.last.Load() > int64(time.Hour.Seconds()) {
		return 0
	}
	return o.some.Load()
}
