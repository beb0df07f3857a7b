package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // so that time zones are known on every machine

	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Schedule is a schedule of an active version, with its last and next tick.
type Schedule struct {
	Owner  string `json:"owner"`
	Worker string `json:"worker"`
	workers.Schedule
	Last    time.Time `json:"last,omitzero"`
	Next    time.Time `json:"next,omitzero"`
	Skipped time.Time `json:"skipped,omitzero"`
	Node    string    `json:"node,omitempty"`
	Paused  bool      `json:"paused"`
}

// DescribeSchedules describes the schedules of the active versions of workers.
func DescribeSchedules(ctx context.Context, list []workers.Installation, s *schedule.Store) ([]Schedule, error) {
	var rows []Schedule
	for _, in := range list {
		w := in.Active()
		if w == nil {
			continue
		}
		for _, one := range w.Schedules {
			row, err := describeSchedule(ctx, in, one, s)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func describeSchedule(ctx context.Context, in workers.Installation, one workers.Schedule,
	s *schedule.Store) (Schedule, error) {
	st, err := s.Status(ctx, in, one)
	one.Overlap, one.Misfire = one.Overlap.OrDefault(), one.Misfire.OrDefault()
	return Schedule{in.Owner, in.Name, one, st.Last, st.Next, st.Skipped, st.Node, st.Paused}, err
}

// FindSchedule returns the schedule of the active version with this name. The error names the schedules that it has.
func FindSchedule(in workers.Installation, name string) (workers.Schedule, error) {
	var names []string
	var all []workers.Schedule
	if w := in.Active(); w != nil {
		all = w.Schedules
	}
	for _, s := range all {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	has := "none"
	if len(names) > 0 {
		has = strings.Join(names, ", ")
	}
	return workers.Schedule{}, &Error{Code: http.StatusNotFound, Text: fmt.Sprintf(
		"worker %s has no schedule %q: it has %s",
		in.Target(), name, has)}
}

// ScheduleList is a page of the list of schedules.
type ScheduleList struct {
	Schedules []Schedule `json:"schedules"`
	Next      string     `json:"next,omitempty"` // the worker after which the next page begins; empty at the end
}

// Schedules lists the schedules of the workers that r chooses. A page never splits the schedules of a worker.
func (o *Operations) Schedules(ctx context.Context, r ListWorkers) (ScheduleList, error) {
	workers, limit, err := r.find(ctx, o)
	if err != nil {
		return ScheduleList{Schedules: []Schedule{}}, err
	}
	return schedulePage(ctx, o.schedules, workers, limit, o.answerRoom())
}

// runningSchedules does what Schedules does, with the workers that this process runs: to read all that are stored would
// take most of the time of a page.
func (s *Server) runningSchedules(ctx context.Context, r ListWorkers) (ScheduleList, error) {
	if s.here != nil { // nothing runs here
		return s.Schedules(ctx, r)
	}
	limit, err := r.check()
	if err != nil {
		return ScheduleList{Schedules: []Schedule{}}, err
	}
	var list []workers.Installation
	for _, in := range s.cfg.Process.Installations() {
		if w := in.Active(); w != nil && len(w.Schedules) > 0 && (r.Owner == "" || in.Owner == r.Owner) &&
			in.Target() > r.After {
			list = append(list, *in)
		}
	}
	slices.SortFunc(list, func(a, b workers.Installation) int { return strings.Compare(a.Target(), b.Target()) })
	return schedulePage(ctx, s.schedules, list, limit, s.answerRoom())
}

// schedulePage describes the schedules of the first workers, in about room bytes.
func schedulePage(ctx context.Context, s *schedule.Store, from []workers.Installation, limit,
	room int) (ScheduleList, error) {
	list, size, last := ScheduleList{Schedules: []Schedule{}}, 0, ""
	for _, w := range from {
		rows, err := DescribeSchedules(ctx, []workers.Installation{w}, s)
		if err != nil {
			return list, err
		}
		if len(rows) == 0 {
			continue
		}
		text, err := json.Marshal(rows)
		if err != nil {
			return list, err
		}
		if size += len(text); last != "" && (len(list.Schedules)+len(rows) > limit || size > room) {
			list.Next = last
			break
		}
		list.Schedules, last = append(list.Schedules, rows...), w.Target()
	}
	return list, nil
}

// ScheduleName names one schedule of an active version.
type ScheduleName struct {
	Worker string `json:"worker"` // OWNER/WORKER
	Name   string `json:"name"`
}

func (o *Operations) findSchedule(ctx context.Context,
	r ScheduleName) (in workers.Installation, s workers.Schedule, err error) {
	owner, name, err := WorkerName{r.Worker}.parse()
	if err != nil {
		return in, s, err
	}
	if in, err = o.workers.Installation(ctx, owner, name); err != nil {
		return in, s, err
	}
	s, err = FindSchedule(in, r.Name)
	return in, s, err
}

// NextTicks asks for the next ticks of a schedule.
type NextTicks struct {
	ScheduleName
	Count int `json:"count"` // 0: 10
}

// maxNext is the highest number of ticks in an answer.
const maxNext = 100

// Ticks are the next ticks of a schedule. A paused schedule has none.
type Ticks struct {
	Name   string      `json:"name"`
	Paused bool        `json:"paused"`
	Ticks  []time.Time `json:"ticks"`
	Worker string      `json:"worker"`
}

// NextTicks returns the next ticks of a schedule.
func (o *Operations) NextTicks(ctx context.Context, r NextTicks) (Ticks, error) {
	if r.Count < 0 || r.Count > maxNext {
		return Ticks{}, refused("count is %d: it is 1 to %d, or 0 for 10", r.Count, maxNext)
	}
	if r.Count == 0 {
		r.Count = 10
	}
	w, s, err := o.findSchedule(ctx, r.ScheduleName)
	if err != nil {
		return Ticks{}, err
	}
	ticks, paused, err := o.schedules.Next(ctx, w, s, r.Count)
	return Ticks{r.Name, paused, append([]time.Time{}, ticks...), r.Worker}, err
}

// PauseSchedule stops the ticks of a schedule until it is resumed.
func (o *Operations) PauseSchedule(ctx context.Context, r ScheduleName) (Schedule, error) {
	return o.changeSchedule(ctx, r, o.schedules.Pause)
}

// ResumeSchedule starts the ticks of a paused schedule again.
func (o *Operations) ResumeSchedule(ctx context.Context, r ScheduleName) (Schedule, error) {
	return o.changeSchedule(ctx, r, o.schedules.Resume)
}

func (o *Operations) changeSchedule(ctx context.Context, r ScheduleName,
	change func(context.Context, workers.Installation, workers.Schedule) error) (Schedule, error) {
	w, s, err := o.findSchedule(ctx, r)
	if err != nil {
		return Schedule{}, err
	}
	if err := change(ctx, w, s); err != nil {
		return Schedule{}, err
	}
	return describeSchedule(ctx, w, s, o.schedules)
}

// WaitingEvent is an event that waits for its time.
type WaitingEvent struct {
	At      time.Time `json:"at"`
	Owner   string    `json:"owner"`
	Worker  string    `json:"worker"`
	Kind    string    `json:"kind"`
	ID      string    `json:"id"`
	Attempt int       `json:"attempt"`
	Stored  time.Time `json:"stored"`
}

// DescribeWaiting describes an event that waits.
func DescribeWaiting(w *schedule.WaitingEvent) WaitingEvent {
	v := w.Event
	return WaitingEvent{w.At, v.Owner, v.Worker, v.Kind.String(), v.ID, w.Runs.Attempt, v.Stored}
}

// ListWaiting chooses events that wait for their time.
type ListWaiting struct {
	Owner  string `json:"owner"`
	Worker string `json:"worker"` // WORKER or OWNER/WORKER
	After  uint64 `json:"after"`
	Limit  int    `json:"limit"`
}

// WaitingList is a page of the list of waiting events.
type WaitingList struct {
	Events []WaitingEvent `json:"events"`
	Next   uint64         `json:"next,omitempty"` // sequence after which the next page begins; 0 at the end
}

// WaitingEvents lists events that wait for their time.
func (o *Operations) WaitingEvents(ctx context.Context, r ListWaiting) (WaitingList, error) {
	list := WaitingList{Events: []WaitingEvent{}}
	if err := SplitWorker(&r.Owner, &r.Worker); err != nil {
		return list, err
	}
	for what, name := range map[string]string{"owner": r.Owner, "worker": r.Worker} {
		if err := CheckName(what, name); err != nil {
			return list, err
		}
	}
	limit, err := listed(r.Limit)
	if err != nil {
		return list, err
	}
	size, last := 0, uint64(0)
	for w, err := range o.schedules.WaitingAfter(ctx, r.Owner, r.Worker, r.After) {
		if err != nil {
			return list, err
		}
		d := DescribeWaiting(w)
		text, err := json.Marshal(d)
		if err != nil {
			return list, err
		}
		if size += len(text) + 1; len(list.Events) == limit || size > o.answerRoom() && last > 0 {
			list.Next = last
			break
		}
		list.Events, last = append(list.Events, d), w.Event.Origin.Seq
	}
	return list, nil
}

// CancelWaiting names events of a worker that wait for their time.
type CancelWaiting struct {
	Worker string `json:"worker"` // OWNER/WORKER
	ID     string `json:"id"`
}

// Cancelled is the number of cancelled events.
type Cancelled struct {
	Cancelled int `json:"cancelled"`
}

// CancelWaiting cancels the waiting events with an ID.
func (o *Operations) CancelWaiting(ctx context.Context, r CancelWaiting) (Cancelled, error) {
	owner, worker, err := WorkerName{r.Worker}.parse()
	if err != nil {
		return Cancelled{}, err
	}
	n, err := o.schedules.Cancel(ctx, owner, worker, r.ID)
	if errors.Is(err, schedule.ErrEventID) {
		return Cancelled{}, refused("%v", err)
	}
	return Cancelled{n}, err
}
