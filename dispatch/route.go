package dispatch

import (
	"strconv"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
)

// route has the versions of one worker: the active one, and older ones that events may name by Worker-Version.
type route struct {
	active *version   // nil after Remove
	kept   []*version // all versions that may be named, including the active one; the last installed is last
}

// version is one version of a worker, with what was measured of it here.
type version struct {
	worker   *events.Worker
	retries  events.Retries // no zero fields
	handlers uint8          // bit k: it has a handler for Kind k
	warm     threadSet      // threads that probably hold a context of it
	cpu      time.Duration  // expected CPU time of an event
	known    bool           // cpu was measured
}

func newVersion(w *events.Worker) *version {
	v := &version{worker: w, retries: w.Retries.OrDefault(), cpu: unknownCost}
	for _, k := range w.Handlers {
		v.handlers |= 1 << k
	}
	if len(w.Handlers) == 0 {
		v.handlers = 0xff // not known: the thread will find out
	}
	return v
}

// install makes w the active version.
func (r *route) install(w *events.Worker) {
	v := newVersion(w)
	for i, old := range r.kept {
		if old.worker.Version == w.Version {
			v.warm, v.cpu, v.known = old.warm, old.cpu, old.known
			r.kept = append(r.kept[:i:i], r.kept[i+1:]...)
			break
		}
	}
	if !v.known && r.active != nil {
		v.cpu = r.active.cpu // likely about the same
	}
	r.active = v
	r.kept = append(r.kept, v)
	if extra := len(r.kept) - keptVersions - 1; extra > 0 {
		r.kept = append([]*version(nil), r.kept[extra:]...)
	}
}

// resolve returns the version that runs an event with this Worker-Version: "" is the active one, otherwise a whole
// version or its number.
func (r *route) resolve(pin string) (*version, *events.Failure) {
	if r == nil || r.active == nil {
		return nil, noWorker
	}
	if pin == "" {
		return r.active, nil
	}
	number, err := strconv.Atoi(pin)
	for _, v := range r.kept {
		if v.worker.Version == pin || err == nil && v.worker.Number == number {
			return v, nil
		}
	}
	return nil, noVersion
}

// ended updates the measurements after an attempt on the thread.
func (v *version) ended(thread threadSet, end *lifecycle.End) {
	if !end.Started {
		return
	}
	if end.Failure != nil || end.Interrupted {
		v.warm &^= thread // a context is thrown away after a failure
	} else {
		v.warm |= thread
	}
	cpu := max(end.CPU, leastCost)
	if !v.known {
		v.cpu, v.known = cpu, true
		return
	}
	v.cpu += (cpu - v.cpu) / 8
}
