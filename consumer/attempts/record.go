package attempts

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
)

// Record is the record, in the bucket PINWHEEL_ATTEMPTS, of an event that did not end with its first run. Deliveries
// alone do not count attempts: a delivery may have had no run (given back), or many (retries in one process).
type Record struct {
	Failed   int       `json:"failed"`           // runs that failed
	Returned int       `json:"returned"`         // deliveries with no run except failed ones, or whose last run has failed
	FirstAt  time.Time `json:"firstAt,omitzero"` // first failure

	// Crashes counts the runs that ended with their process, and may be the reason. Once the event is watched, Running
	// shows them: it is stored before each run begins and when it has ended, and deliveries no longer count.
	Crashes      int    `json:"crashes,omitempty"`
	CrashedAlone bool   `json:"crashedAlone,omitempty"` // enough crashes were while Alone: it is guilty
	Unknown      int    `json:"unknown,omitempty"`      // of Crashes, once it is watched: nobody knows why the process ended
	Outside      int    `json:"outside,omitempty"`      // runs that ended with their process, but not because of what ran
	Spared       int    `json:"spared,omitempty"`       // such runs before it was delayed
	Watched      bool   `json:"watched,omitempty"`
	Running      bool   `json:"running,omitempty"`
	Alone        bool   `json:"alone,omitempty"`    // nothing else runs in its process
	Instance     string `json:"instance,omitempty"` // of the process, while Running; "": nobody will report how it ended

	History []events.FailedRun `json:"history,omitempty"` // the last runs that failed, oldest first
	Moving  *Moving            `json:"moved,omitempty"`   // it is being delayed

	// Stored is when the event was stored, in nanoseconds: a stream that was deleted and created again gives the same
	// sequences to other events. It is 0 in records of earlier versions.
	Stored int64 `json:"stored,omitempty"`

	// Version counts how often this process has changed the record. It is not stored.
	Version int `json:"-"`
}

// Moving is in the record of an event that is being delayed. Neither this process nor the process that gets the event
// after a crash may begin its next run; the latter delays it again.
type Moving struct {
	Until   time.Time `json:"until"`   // by the clock of NATS
	Attempt int       `json:"attempt"` // of the next run
	Crashes int       `json:"crashes"`
}

// maxMessage limits the message of each failure in a record. A dead letter keeps no more of it.
const maxMessage = events.MaxHistoryMessage

// MostUnknown is after how many crashes, of which nobody knows why, an event is taken for guilty, if it ran alone
// during the last. Machines vanish, and one of the events that runs alone then is not the reason. But an event that
// takes its whole machine with it must come to an end too.
const MostUnknown = 10

// Delivered counts the end with its process that the previous delivery may have had, for that cause. deliveries is the
// number of deliveries, including the current one. If this process dies before it stores anything, the same is counted
// again, with the same result.
func (r *Record) Delivered(deliveries int, cause crashnote.Cause) {
	switch {
	case r.Ran() && cause == crashnote.Outside:
		r.Outside++
	case r.Ran() && cause.Evidence():
		r.Crashes++
		r.CrashedAlone = r.CrashedAlone || r.Alone
	case r.Ran():
		r.Crashes++
		r.Unknown++
		r.CrashedAlone = r.CrashedAlone || r.Alone && r.Unknown >= MostUnknown
	case !r.Watched && r.Unexplained(deliveries):
		// Only one of the unexplained deliveries may have had a run: after it, the event is watched before it runs.
		r.Crashes = 1
	}
	r.Rest()
}

// Ran reports whether the event ran when the record was stored. It no longer runs when it comes again, or in a
// process that has lost its lease. r may be nil.
func (r *Record) Ran() bool { return r != nil && r.Watched && r.Running }

// Unexplained reports whether a delivery ended in a way that the record does not explain. deliveries is the number of
// deliveries, including the current one. A nil record explains nothing.
func (r *Record) Unexplained(deliveries int) bool {
	if r != nil {
		deliveries -= r.Returned
	}
	return deliveries > 1
}

// Next is the number of the run that comes next.
func (r *Record) Next() int { return r.Failed + r.Crashes + r.Outside + 1 }

// Fail counts a run that failed.
func (r *Record) Fail(f events.FailedRun) {
	r.Failed++
	f.Message = short(f.Message)
	if r.FirstAt.IsZero() {
		r.FirstAt = f.At
	}
	r.History = append(r.History, f)
	if len(r.History) > events.MaxHistory {
		r.History = r.History[len(r.History)-events.MaxHistory:]
	}
}

// Asked reports whether the last run that failed did so because the handler asked for another one.
func (r *Record) Asked() bool {
	n := len(r.History)
	return n > 0 && r.Crashes == 0 && r.History[n-1].Asked
}

// Rest notes that the event no longer runs. r may be nil.
func (r *Record) Rest() {
	if r != nil {
		r.Running, r.Alone, r.Instance = false, false, ""
	}
}

// short cuts a message to maxMessage bytes.
func short(message string) string {
	return strings.ToValidUTF8(message[:min(len(message), maxMessage)], "")
}

// Carry returns the part of a record that is stored with a delayed event: when it first failed, and its last failures.
// It returns "" when there is nothing to store.
func Carry(r *Record) string {
	if r == nil || r.FirstAt.IsZero() && !r.CrashedAlone && r.Unknown+r.Outside+r.Spared == 0 {
		return ""
	}
	carried := Record{FirstAt: r.FirstAt, CrashedAlone: r.CrashedAlone, Unknown: r.Unknown, Spared: r.Spared + r.Outside,
		History: slices.Clone(r.History)}
	for i := range carried.History {
		carried.History[i].Message = short(carried.History[i].Message)
	}
	text, err := json.Marshal(carried)
	if err != nil {
		return ""
	}
	return string(text)
}

// Carried is the inverse of Carry. It returns nil for a text that cannot be read.
func Carried(text string) *Record {
	r := &Record{}
	if text == "" || json.Unmarshal([]byte(text), r) != nil || r.Unknown < 0 || r.Spared < 0 {
		return nil
	}
	return &Record{FirstAt: r.FirstAt, CrashedAlone: r.CrashedAlone, Unknown: r.Unknown, Spared: r.Spared,
		History: r.History}
}

// decode decodes m as the record of e. It returns nil when there is none, or when it is the record of an event that had
// e's sequence before.
func decode(m *stored.Message, e *events.Event) *Record {
	if m == nil || len(m.Data) == 0 { // a deletion marker
		return nil
	}
	r := &Record{}
	if err := json.Unmarshal(m.Data, r); err != nil || min(r.Failed, r.Returned, r.Crashes, r.Unknown, r.Outside,
		r.Spared) < 0 {
		return nil // not ours, or broken: count by deliveries
	}
	if r.Stored != 0 && r.Stored != e.Stored.UnixNano() {
		return nil
	}
	return r
}
