package consumer

import (
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/attempts"
	"github.com/pinwheel-run/pinwheel/consumer/bodies"
	"github.com/pinwheel-run/pinwheel/consumer/cancel"
	"github.com/pinwheel-run/pinwheel/consumer/deadletter"
	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/parking"
	"github.com/pinwheel-run/pinwheel/consumer/results"
	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/consumer/sources"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// stores are the packages that store, find and park for the settle goroutine. They know JetStream, but not the events
// in flight.
type stores struct {
	attempts     *attempts.Store
	claims       *deadletter.Claims
	letters      *deadletter.Writer
	letterRounds *jsapi.Rounds // in which letters are written
	notifier     *deadletter.Notifier
	results      *results.Store
	parked       *parking.Owners
	parker       *parking.Parker
	delays       *schedule.Delays
	waiting      *schedule.Waiting
	replacer     *schedule.Replacer
	chunks       *bodies.Chunks
	parts        *bodies.Parts
	sources      *sources.Sources
	cancels      *cancel.Notes
}

// finisher ends events: it acks, gives back and publishes replies. All its methods run on the settle goroutine.
type finisher struct {
	stores
	cfg      Config
	api      *jsapi.Client
	log      zerolog.Logger
	metrics  *metrics
	inflight *inflight
	clock    *jsapi.Clock
	acks     *acks
	replies  replier
	output   workerLog
	absences *atomic.Uint64 // how often leases may have ended because the process was paused or had no connection
}

// settler owns the settle goroutine, on which events are checked, settled and ended. All its methods run there, except
// add and run.
type settler struct {
	finisher
	recorder
	dispatcher Dispatcher
	retries    *retries
	draining   *atomic.Bool
	overdue    overdue
	reconnects uint64 // of the connection, when the loop last checked

	mu      sync.Mutex
	settled []lifecycle.Settlement // to be carried out
}

// add queues settlements. It may be called from any goroutine.
func (s *settler) add(batch []lifecycle.Settlement) {
	s.mu.Lock()
	s.settled = append(s.settled, batch...)
	s.mu.Unlock()
	jsapi.Signal(s.api.Wake)
}

// leaseLost forgets an event whose end could not be confirmed: it will be delivered again.
func (s *finisher) leaseLost(h *entry) {
	s.log.Warn().Str("event", h.event.ID).Str("worker", h.event.Target()).Uint64("seq", h.event.Origin.Seq).
		Msg("end of an event was not confirmed before its lease ended; it will be delivered again")
	s.metrics.lost.Inc()
	s.inflight.remove(h)
}

// again calls f again later, for h. It returns false when h's lease is over.
func (s *finisher) again(h *entry, f func()) bool {
	if h.tries == nil {
		h.tries = jsapi.NewRetrier(s.cfg.AckWait)
	}
	return s.api.Retry(h.tries, f)
}

// step notifies a test of a step.
func (s *finisher) step(at Step) {
	if s.cfg.Step != nil {
		s.cfg.Step(at)
	}
}

// fate is what has been decided about how an event ends.
type fate struct {
	replaced  bool         // the schedule's next tick is there: the event ends, however its run ends
	dead      bool         // its dead letter is stored
	cancelled bool         // somebody cancels it: it ends with the run in progress at the latest
	silent    bool         // its message was deleted, and who did that answers for it
	became    cancel.State // how it ended; Absent = not known yet
	told      int64        // when the run began that threads were told to end; 0 = none
	toldAt    int64        // when that was; Unix time in nanoseconds
}

// cancelID is what others call h who cancel it.
func (h *entry) cancelID() cancel.ID {
	return cancel.ID{Stream: h.from.stream, Seq: h.event.Origin.Seq, Stored: h.stored.UnixNano()}
}
