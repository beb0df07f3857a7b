package sources

import (
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/events"
)

// tally is what a feed knows of its events that have not ended. The feed's mu must be held.
type tally struct {
	stored   uint64 // events stored by this process
	ahead    int    // about how many events have not ended
	had      int    // events at the last count, when base were stored by this process
	base     uint64
	counting bool
	again    time.Duration // until the next count
}

// count asks how many events of the source have not ended. Those that wait for room, or until their worker is resumed,
// are among the parked ones, with other tasks of the worker. mu must be held.
func (f *feed) count(now time.Time) {
	if f.counting {
		return
	}
	f.counting = true
	base := f.stored
	parked := f.s.cfg.Prefix.Parked(&events.Event{Kind: events.Task, Owner: f.rec.Owner, Worker: f.rec.Worker})
	tasks := strings.TrimSuffix(parked, f.rec.Worker) + ">"
	time.AfterFunc(0, func() { // mu is held, and counted needs it
		f.s.askCount(events.StreamEvents, f.subject, now, []string{f.subject}, func(n int, err error) {
			if err != nil {
				f.counted(0, base, err)
				return
			}
			f.s.askCount(events.StreamParked, tasks, time.Now(), []string{parked, events.Held(parked)},
				func(more int, err error) { f.counted(n+more, base, err) })
		})
	})
}

// askCount asks how many messages a stream has of some subjects, which a filter has. done must not block.
func (s *Sources) askCount(stream, filter string, now time.Time, subjects []string, done func(int, error)) {
	ask := &nats.Msg{Subject: "$JS.API.STREAM.INFO." + stream, Data: []byte(`{"subjects_filter":"` + filter + `"}`)}
	s.stores.Ask(ask, storeWait, now, func(answer *nats.Msg, err error) {
		var a struct {
			State struct {
				Subjects map[string]uint64 `json:"subjects"`
			} `json:"state"`
		}
		if err == nil {
			err = jsapi.Decode(answer.Data, &a)
		}
		n := 0
		for _, subject := range subjects {
			n += int(a.State.Subjects[subject])
		}
		done(n, err)
	})
}

// counted notes that n events had not ended when base were stored by this process.
func (f *feed) counted(n int, base uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ended := int(base-f.base) - (n - f.had) // of the events since the last count
	switch {
	case err == nil && n < mostAhead/2:
		f.again = 0
	case err == nil && ended > 0:
		f.again = recount
	default:
		f.again = min(maxRecount, max(recount, 2*f.again))
	}
	if err == nil {
		f.ahead, f.had, f.base = n+int(f.stored-base), n, base
		f.isAhead()
	}
	time.AfterFunc(f.again, func() {
		f.mu.Lock()
		f.counting = false
		f.mu.Unlock()
		f.pump.want(f)
	})
}

// tooMany is why a source is not read of which as many events wait and run as may.
const tooMany = "its events wait in the fleet: no more come until some have ended"

// isAhead says whether the source waits for its events to end: it asks for nothing, as room decides. mu must be held.
func (f *feed) isAhead() {
	switch full := f.credits == 0 && f.left() < f.least(); {
	case full && f.state == "":
		f.condition = condition{BacksOff, tooMany}
	case !full && f.why == tooMany:
		f.condition = condition{}
	}
}
