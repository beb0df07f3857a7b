package schedule

import (
	"cmp"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/cron"
)

const (
	// tickFresh is how late a tick may be and still count as made in time, with any misfire policy: clocks differ, and
	// it takes time to replace a process that died.
	tickFresh = 30 * time.Second
	// tickStandby is how long a process leaves a tick to the process that made the last one. Each process then waits a
	// random time up to as long again.
	tickStandby = 250 * time.Millisecond
	// tickBatch is the maximum number of ticks that are stored together. JetStream takes 1000 messages in a batch.
	tickBatch = 500
)

// tickState is the state of a schedule in the stream of schedules: the last tick that was made or left out, or a later
// time at which ticks begin again. The next tick is computed from that alone, so wrong clocks of processes
// make no difference.
type tickState struct {
	Last     int64  `json:"last"`             // seconds since the epoch
	Ticked   int64  `json:"ticked,omitempty"` // the last tick itself; 0 = none yet, or written by an earlier version
	Cron     string `json:"cron"`
	TimeZone string `json:"timeZone,omitempty"`
	Deployed int64  `json:"deployed"` // time of the worker's deployment, milliseconds since the epoch
	Number   int    `json:"number"`   // of that deployment
	Node     string `json:"node"`     // process that made the tick
	Paused   bool   `json:"paused,omitempty"`
	Removed  bool   `json:"removed,omitempty"` // with its worker
	Skipped  int64  `json:"skipped,omitempty"` // the last tick that was left out because of overlap
}

// liveSchedule is a schedule of an active version, as this process knows it. The ticker's goroutine owns the fields
// after the blank line.
type liveSchedule struct {
	owner, worker string
	schedule      workers.Schedule
	spec          *cron.Schedule
	deployed      int64
	number        int

	known bool
	state *tickState // nil: there is none
	seq   uint64     // of state
	next  time.Time  // when to look again, by this process's clock
	fails int        // in a row
}

// newLiveSchedule returns schedule s of the active version of in. Its state is not known yet.
func newLiveSchedule(in workers.Installation, s workers.Schedule) *liveSchedule {
	return &liveSchedule{owner: in.Owner, worker: in.Name, schedule: s, deployed: in.Deployment.At.UnixMilli(),
		number: in.Deployment.Number}
}

// base is the time after which ticks have not been made yet.
func (s *liveSchedule) base() time.Time {
	deployed := time.UnixMilli(s.deployed)
	if s.state == nil {
		return deployed
	}
	last := time.Unix(s.state.Last, 0)
	same := s.state.Cron == s.schedule.Cron && s.state.TimeZone == s.schedule.TimeZone && !s.state.Removed
	// Deployments count from 1 again when a worker was removed in between.
	again := s.number <= s.state.Number && s.deployed != s.state.Deployed
	if same && !again || last.After(deployed) {
		return last
	}
	return deployed
}

// newer reports whether another process knows a newer deployment of the worker.
func (s *liveSchedule) newer() bool { return s.state != nil && s.state.Deployed > s.deployed }

// skip is why ticks are left out: a label of the metric.
type skip string

const (
	skipMisfire skip = "misfire" // no process made them in time, and the schedule's misfire does not make up for them
	skipOverlap skip = "overlap" // the event of an earlier tick has not ended, or a later tick is due too
	skipPause   skip = "pause"   // the worker is paused, and its ticks are not to wait
	skipShare   skip = "share"   // the owner has more events waiting than its share
)

// because is why in the words of the log.
var because = map[skip]string{
	skipMisfire: "no process made them in time, and the schedule's misfire does not make up for them",
	skipOverlap: "the schedule's overlap leaves them to the last one that is due",
	skipPause:   "their worker is paused, and its ticks are skipped meanwhile",
	skipShare:   "their owner has more events waiting than its share",
}

// ticksDue are what becomes of the ticks that are due now.
type ticksDue struct {
	make    []time.Time // oldest first
	skipped map[skip]int
	last    time.Time // the last tick that is then handled: the zero time when none is due
}

// leave leaves out all but the ticks from the one at i on.
func (d *ticksDue) leave(i int, why skip) {
	if i > 0 {
		d.skipped[why] += i
		d.make = d.make[i:]
	}
}

// plan returns what becomes of the ticks that are due now.
func plan(spec *cron.Schedule, sched workers.Schedule, base, now time.Time) ticksDue {
	ticks := spec.Missed(base, now, workers.MaxMissed)
	if len(ticks) == 0 {
		return ticksDue{}
	}
	due := ticksDue{make: ticks, skipped: map[skip]int{}, last: ticks[len(ticks)-1]}
	fresh, _ := slices.BinarySearchFunc(ticks, now.Add(-tickFresh), time.Time.Compare)
	switch sched.Misfire.OrDefault() {
	case workers.MisfireSkip:
		due.leave(fresh, skipMisfire)
	case workers.MisfireOnce:
		due.leave(min(fresh, len(ticks)-1), skipMisfire)
	case workers.MisfireAll:
	}
	if sched.Overlap.OrDefault() != events.OverlapAllow {
		due.leave(len(due.make)-1, skipOverlap)
	}
	return due
}

// ticked is the last tick that was made or left out; 0 = none yet.
func (st *tickState) ticked() int64 {
	if st.Ticked == 0 && st.Node != "" { // made by an earlier version, which did not note it
		return st.Last
	}
	return st.Ticked
}

// after is s.state once the ticks up to last are handled.
func (s *liveSchedule) after(last time.Time, node string) *tickState {
	st := &tickState{
		Last: last.Unix(), Cron: s.schedule.Cron, TimeZone: s.schedule.TimeZone, Deployed: s.deployed, Number: s.number,
		Node: node,
	}
	if s.state != nil {
		st.Skipped = s.state.Skipped
	}
	return st
}

// compareLive compares schedules by owner, worker and name.
func compareLive(a, b *liveSchedule) int {
	return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.worker, b.worker),
		cmp.Compare(a.schedule.Name, b.schedule.Name))
}
