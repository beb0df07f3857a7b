package events

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Overlap says what happens to a tick when the event of the previous tick has not ended.
type Overlap string

// The policies of overlap. The zero value means OverlapAllow.
const (
	OverlapAllow   Overlap = "allow"   // both run
	OverlapForbid  Overlap = "forbid"  // the new tick is skipped
	OverlapReplace Overlap = "replace" // the previous event is ended, then the new one runs
)

// OrDefault is OverlapAllow for the zero value.
func (o Overlap) OrDefault() Overlap {
	if o == "" {
		return OverlapAllow
	}
	return o
}

// TickID is the id of the event of a tick. It is the same in each process.
func TickID(owner, worker, schedule string, tick time.Time) string {
	return "cron:" + owner + ":" + worker + ":" + schedule + ":" + strconv.FormatInt(tick.Unix(), 10)
}

// Overlaps is the overlap policy of the schedule that made the event, and OverlapAllow for other events.
func (e *Event) Overlaps() Overlap {
	switch {
	case strings.HasPrefix(e.Key, "forbid~"):
		return OverlapForbid
	case strings.HasPrefix(e.Key, "replace~"):
		return OverlapReplace
	}
	return OverlapAllow
}

// DueLanes is the number of partitions of due events in the stream of schedules. An owner is always in the same lane.
const DueLanes = 4

// dueLane is the lane of an owner.
func dueLane(owner string) string { return strconv.Itoa(int(fnv1a(owner) % DueLanes)) }

// AllSchedules is the filter of the stream of schedules. Only the fleet may publish there.
func (s Subjects) AllSchedules() string { return string(s) + ".schedules.>" }

// SchedulesAnchor is the subject of the message that keeps that stream from being empty.
func (s Subjects) SchedulesAnchor() string { return string(s) + ".schedules.pin" }

// DueLane is the filter of the consumer of one lane, 0 <= lane < DueLanes.
func (s Subjects) DueLane(lane int) string {
	return string(s) + ".schedules.due." + strconv.Itoa(lane) + ".>"
}

// Waiting is where the event waits until its time: <prefix>.schedules.at.<lane>.<kind>.<owner>.<worker>.<hash of its
// id>.<key>.
func (s Subjects) Waiting(e *Event) string { return s.scheduled("at", e, e.idToken()) }

// Due is where the event is after its time has come: like Waiting, with due instead of at.
func (s Subjects) Due(e *Event) string { return s.scheduled("due", e, e.idToken()) }

// Anywhere is the filter for the event in that stream, waiting or due. If its schedule forbids or replaces overlapping
// events, it is the filter for the events of all ticks.
func (s Subjects) Anywhere(e *Event) string { return s.scheduled("*", e, "*") }

func (s Subjects) scheduled(state string, e *Event, id string) string {
	return strings.Join([]string{
		string(s), "schedules", state, dueLane(e.Owner), e.Kind.String(), nameOrTilde(e.Owner), nameOrTilde(e.Worker), id,
		e.key(),
	}, ".")
}

// WaitingEvents is the filter for events that wait. An empty string stands for any.
func (s Subjects) WaitingEvents(owner, worker, id string) string {
	parts := []string{string(s), "schedules", "at", "*", "*", owner, worker, "", "*"}
	if id != "" {
		parts[7] = idHash(id)
	}
	for i, p := range parts {
		if p == "" {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, ".")
}

// ScheduledOwner are the filters for the waiting and the due events of an owner.
func (s Subjects) ScheduledOwner(owner string) []string {
	tail := ".*.*." + owner + ".>"
	return []string{string(s) + ".schedules.at" + tail, string(s) + ".schedules.due" + tail}
}

// AnywhereEarlier is Anywhere of earlier binaries. Their keys did not have the time when the event was stored.
func (s Subjects) AnywhereEarlier(e *Event) string {
	earlier := *e
	earlier.Key = earlier.place()
	return s.Anywhere(&earlier)
}

// key is the Key of the event, or a new one.
func (e *Event) key() string {
	if e.Key != "" {
		return e.Key
	}
	return e.NewKey()
}

// NewKey is the key of an event that is delayed for the first time. It has the time when the event was stored, because
// a stream that is deleted and created again may give the same sequences to other events.
func (e *Event) NewKey() string { return e.place() + "-" + strconv.FormatInt(e.Stored.UnixNano(), 10) }

// place is where the event was stored first, as one token.
func (e *Event) place() string {
	first := e.FirstStored()
	return first.Stream + "-" + strconv.FormatUint(first.Seq, 10)
}

// idToken is the token for the id of the event. Events of a schedule that may not overlap share one subject.
func (e *Event) idToken() string {
	if e.Overlaps() != OverlapAllow {
		return "~"
	}
	return idHash(e.ID)
}

// idHash is a token for an id, which may be any text.
func idHash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:12])
}

// ScheduleState is where the last tick of a schedule is recorded: <prefix>.schedules.cron.<owner>.<worker>.<name>.
func (s Subjects) ScheduleState(owner, worker, name string) string {
	return string(s) + ".schedules.cron." + owner + "." + worker + "." + name
}

// ParseScheduleState parses a subject made by ScheduleState.
func (s Subjects) ParseScheduleState(subject string) (owner, worker, name string, ok bool) {
	rest, found := strings.CutPrefix(subject, string(s)+".schedules.cron.")
	owner, worker, name, ok = threeTokens(rest)
	return owner, worker, name, found && ok
}

// ScheduleStates is the filter for these. An empty string stands for any.
func (s Subjects) ScheduleStates(owner, worker string) string {
	if owner == "" {
		owner = "*"
	}
	if worker == "" {
		worker = "*"
	}
	return s.ScheduleState(owner, worker, "*")
}

// Unschedule is where a client asks the fleet to cancel a waiting event: <prefix>.unschedule.<owner>.<worker>. The body
// is the id of the event.
func (s Subjects) Unschedule(owner, worker string) string {
	return string(s) + ".unschedule." + owner + "." + worker
}

// AllUnschedules is the filter for these.
func (s Subjects) AllUnschedules() string { return string(s) + ".unschedule.*.*" }

// ParseUnschedule parses a subject made by Unschedule.
func (s Subjects) ParseUnschedule(subject string) (owner, worker string, ok bool) {
	rest, found := strings.CutPrefix(subject, string(s)+".unschedule.")
	owner, worker, _ = strings.Cut(rest, ".")
	return owner, worker, found && ValidName(owner) && ValidName(worker)
}

// Unscheduled is the answer to a request on Subjects.Unschedule, as JSON.
type Unscheduled struct {
	Cancelled int    `json:"cancelled"` // events that waited and will not run
	Error     string `json:"error,omitempty"`
}
