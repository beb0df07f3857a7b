package consumer

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

const (
	// linesPerSecond and linesAtOnce limit the lines about an owner's events.
	linesPerSecond = 5
	linesAtOnce    = 20
)

// workerLog writes lines to workers' output about events that ended without a run, or whose reply was too large. The
// package isolates does so for events that failed in a run. Owners share a fixed number of limits. It belongs to the
// settle goroutine.
type workerLog struct {
	nc      *nats.Conn
	prefix  events.Subjects
	log     zerolog.Logger
	see     func(*events.LogLine) // may be nil
	limits  [64]*rate.Limiter
	skipped [64]int
}

// ended writes why an event ended, if it did so without a run.
func (w *workerLog) ended(e *lifecycle.Delivery, o lifecycle.Outcome) {
	if o.Failure == nil || o.Version != "" || o.Verdict != lifecycle.Ack && o.Verdict != lifecycle.Dead {
		return
	}
	w.write(e, "", "not run: "+o.Failure.Error())
}

// tooLarge writes about a reply that was replaced by the failure r. The run itself has not failed, and the worker's
// author is not notified in any other way.
func (w *workerLog) tooLarge(e *lifecycle.Delivery, r *events.Reply) {
	w.write(e, r.Version, "failed: "+r.Failure.Error()+"; the requester got that in its place, and the event is not run again")
}

// write puts a line into the output of e's worker, at the level error, unless its owner has too many of them.
func (w *workerLog) write(e *lifecycle.Delivery, version, text string) {
	if !events.ValidName(e.Owner) || !events.ValidName(e.Worker) {
		return // there is no such output
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(e.Owner))
	i, now := hash.Sum32()%uint32(len(w.limits)), time.Now()
	if w.limits[i] == nil {
		w.limits[i] = rate.NewLimiter(linesPerSecond, linesAtOnce)
	}
	if !w.limits[i].AllowN(now, 1) {
		w.skipped[i]++
		return
	}
	if w.skipped[i] > 0 {
		text += fmt.Sprintf(" (%d such lines before were left out)", w.skipped[i])
		w.skipped[i] = 0
	}
	l := &events.LogLine{Time: now, Owner: e.Owner, Worker: e.Worker, Version: version, EventID: e.ID, Attempt: e.Attempt,
		Level: "error", Text: text}
	if w.see != nil {
		w.see(l)
	}
	line, err := json.Marshal(l)
	if err == nil {
		err = w.nc.Publish(w.prefix.Logs(e.Owner, e.Worker), line)
	}
	if err != nil {
		w.log.Debug().Err(err).Str("worker", e.Target()).Msg("log line lost")
	}
}
