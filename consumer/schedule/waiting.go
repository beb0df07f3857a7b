package schedule

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer/jsapi"
	"github.com/pinwheel-run/pinwheel/consumer/storage"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

const (
	// waitingLook is how often a process that delays events asks how many wait.
	waitingLook = 5 * time.Second
	// waitingPause is the least time between two looks, however many events it delays.
	waitingPause = 200 * time.Millisecond
	// waitingOwners is for how many owners it asks then. Each costs the server time that grows with the owner's waiting
	// events: 0.2 to 0.5 s for 100 000.
	waitingOwners = 4
)

// Waiting estimates how many events of each owner wait in the stream of schedules, and how many bytes they have,
// because that stream cannot refuse messages itself. It asks for the numbers of single owners only when about as many
// events wait in all as one owner may have, or when half of the allowed bytes are taken. It belongs to the loop of its
// client. Make it with NewWaiting.
type Waiting struct {
	api      *jsapi.Client
	usage    *storage.Usage
	prefix   events.Subjects
	most     int // events of an owner; 0 = any number
	maxBytes int // of all
	log      zerolog.Logger

	looked   time.Time
	looking  bool
	total    int            // of all owners, at the last look
	added    map[string]int // by this process since then, by owner; an owner that asked for room is there with 0
	sum      int            // of added
	bytes    int            // of the stream, at the last look
	sumBytes int            // of added
	counted  map[string]waitingCount
	sizes    map[string]*waitingSize // what this process delayed of each owner, minus what has left since
	admitted admitted                // what this process is about to store
}

// waitingSize is what this process delayed of an owner.
type waitingSize struct{ bytes, messages float64 }

type waitingCount struct {
	n     int
	bytes float64
	at    time.Time
}

// NewWaiting makes a Waiting: most is how many events of one owner may wait (0: any number), and maxBytes how many
// bytes of all.
func NewWaiting(api *jsapi.Client, usage *storage.Usage, prefix events.Subjects, most, maxBytes int,
	log zerolog.Logger) *Waiting {
	return &Waiting{api: api, usage: usage, prefix: prefix, most: most, maxBytes: maxBytes, log: log}
}

// free is how many bytes may be delayed, of all owners together.
func (w *Waiting) free() int { return max(0, w.maxBytes-w.taken()) }

// taken is how many bytes wait, of all owners together.
func (w *Waiting) taken() int { return w.bytes + w.sumBytes + w.admitted.bytes }

// nearlyFull reports whether some owner may have as many events waiting as it may. Only then owners are counted.
func (w *Waiting) nearlyFull() bool {
	most := w.most
	return most > 0 && w.total+w.sum+len(w.admitted.events) >= most || w.taken() > w.free()
}

// May reports whether one more event may wait. It may if its owner has not been counted recently. If so, it counts from
// now on, until Delay has ended or held returns false.
func (w *Waiting) May(e *lifecycle.Delivery, held func() bool) bool {
	owner, most := e.Owner, w.most
	if w.added == nil {
		w.added, w.sizes = make(map[string]int), make(map[string]*waitingSize)
	}
	full, unknown, since := false, false, time.Since(w.looked)
	if w.nearlyFull() {
		w.added[owner] += 0
		n := w.counted[owner]
		unknown = time.Since(n.at) > 2*waitingLook
		full = !unknown && most > 0 && w.eventsOf(owner) >= most || w.bytesOf(owner) > float64(w.free())
	}
	full = full && !guard.StoredShares.Off()
	if !w.looking && since > waitingPause && (since > waitingLook || unknown || most > 0 && w.sum >= most/8 ||
		w.sumBytes > w.free()/8) {
		w.countWaiting()
	}
	if !full {
		w.admitted.add(e, held)
	}
	return !full
}

// eventsOf is about how many events of a counted owner wait.
func (w *Waiting) eventsOf(owner string) int {
	return w.counted[owner].n + w.added[owner] + w.admitted.owners[owner].events
}

// bytesOf is about how many bytes of a counted owner wait.
func (w *Waiting) bytesOf(owner string) float64 {
	bytes := w.counted[owner].bytes
	if e := w.sizes[owner]; e != nil {
		bytes = e.bytes
	}
	return bytes + float64(w.admitted.owners[owner].bytes)
}

// Ended notes that an event that might wait is stored, or is not going to be.
func (w *Waiting) Ended(e *lifecycle.Delivery) { w.admitted.remove(e) }

// Added notes that an event of size bytes was delayed.
func (w *Waiting) Added(owner string, size int) {
	if w.added == nil {
		return
	}
	w.added[owner]++
	w.sum++
	w.sumBytes += size
	e := w.sizes[owner]
	if e == nil {
		e = &waitingSize{}
		w.sizes[owner] = e
	}
	e.bytes, e.messages = e.bytes+float64(size), e.messages+1
}

// countWaiting asks how many events wait in all. If needed, it then asks for the owners with the most events, as far as
// this process knows.
func (w *Waiting) countWaiting() {
	w.looking = true
	w.admitted.sweep()
	before, beforeBytes := maps.Clone(w.added), w.sumBytes
	w.askWaiting(nil, func(total, bytes int, err error) {
		w.looked, w.looking = time.Now(), false
		if err != nil {
			w.log.Debug().Err(err).Msg("how many events wait for their time is not known; trying again")
			return
		}
		w.total, w.bytes = total, bytes
		w.sumBytes -= beforeBytes
		if most := w.most; (most == 0 || total < most/4*3) && bytes < w.free()/4*3 {
			w.counted = nil
			clear(w.sizes)
			w.forgetAdded(before, slices.Collect(maps.Keys(before)))
			return
		}
		maps.DeleteFunc(before, func(owner string, n int) bool {
			return n < w.most/8 && time.Since(w.counted[owner].at) < waitingLook && w.bytesOf(owner) < float64(w.free()/2)
		})
		most := slices.SortedFunc(maps.Keys(before), func(a, b string) int {
			return cmp.Compare(w.counted[b].n+before[b], w.counted[a].n+before[a])
		})
		for _, owner := range most[:min(len(most), waitingOwners)] {
			w.countWaitingOf(owner)
		}
	})
}

func (w *Waiting) countWaitingOf(owner string) {
	before := map[string]int{owner: w.added[owner]}
	// The offset is after the last subject: the answer has the number of subjects, and names none.
	ask := map[string]any{"subjects_filter": w.prefix.WaitingEvents(owner, "", ""), "offset": jsapi.BehindAll}
	w.askWaiting(ask, func(total, _ int, err error) {
		if err != nil {
			return
		}
		if w.counted == nil {
			w.counted = make(map[string]waitingCount)
		}
		mean := float64(w.bytes) / float64(max(1, w.total))
		if e := w.sizes[owner]; e != nil && e.messages > 0 { // assumes that the others have the mean size
			e.bytes, e.messages = e.bytes/e.messages*float64(total), float64(total)
			if total == 0 {
				delete(w.sizes, owner)
			}
		}
		w.counted[owner] = waitingCount{total, mean * float64(total), time.Now()}
		w.forgetAdded(before, []string{owner})
	})
}

// forgetAdded subtracts from added what has been counted.
func (w *Waiting) forgetAdded(before map[string]int, owners []string) {
	for _, owner := range owners {
		w.sum -= before[owner]
		if w.added[owner] -= before[owner]; w.added[owner] <= 0 {
			delete(w.added, owner)
		}
	}
}

// askWaiting asks about the stream of schedules, and calls done.
func (w *Waiting) askWaiting(ask any, done func(total, bytes int, err error)) {
	var a struct {
		Total int `json:"total"` // subjects; absent when there is none
		State struct {
			Messages int `json:"messages"`
			Bytes    int `json:"bytes"`
		} `json:"state"`
	}
	w.api.Call("$JS.API.STREAM.INFO."+events.StreamSchedules, ask, &a, func(err error) {
		if ask == nil {
			a.Total = a.State.Messages
		}
		done(a.Total, a.State.Bytes, err)
	})
}

// TooMany is the failure of a delayed event that is refused.
func (w *Waiting) TooMany(owner string) *events.Failure {
	n := w.eventsOf(owner)
	if most := w.most; most == 0 || n < most {
		return events.Fail(events.ReasonRate, "about %.0f bytes of events of owner %s wait for their time already: it may have as many as are free, %d", w.bytesOf(owner), owner, w.free())
	}
	return events.Fail(events.ReasonRate, "%d events of owner %s, or about as many, wait for their time already: it may have no more", w.most, owner)
}

// Full reports whether an owner has more bytes waiting in the stream of schedules than are free, estimated by the
// number of its events. Then no more ticks of its schedules are made. It asks only when half of the stream is taken.
func (w *Waiting) Full(ctx context.Context, owner string) bool {
	if guard.StoredShares.Off() || !w.usage.OverHalf(events.StreamSchedules) {
		return false
	}
	n := 0
	for _, filter := range w.prefix.ScheduledOwner(owner) {
		// each has a subject of its own
		of, err := jsapi.CountMessages(ctx, w.api.NC, events.StreamSchedules, filter, jsapi.BehindAll)
		if err != nil {
			return false
		}
		n += of
	}
	return w.usage.OverShare(events.StreamSchedules, n)
}
