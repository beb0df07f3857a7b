package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"
	_ "time/tzdata" // time zones are known wherever it runs

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
)

// scheduleJSON is a schedule as machines read it.
type scheduleJSON struct {
	Owner  string `json:"owner"`
	Worker string `json:"worker"`
	events.Schedule
	Last    time.Time `json:"last,omitzero"`
	Next    time.Time `json:"next,omitzero"`
	Skipped time.Time `json:"skipped,omitzero"`
	Node    string    `json:"node,omitempty"`
	Paused  bool      `json:"paused"`
}

// scheduleRows are the schedules of workers, which are active versions.
func scheduleRows(ctx context.Context, workers []*events.Worker, b *consumer.Schedules) ([]scheduleJSON, error) {
	var rows []scheduleJSON
	for _, w := range workers {
		for _, sched := range w.Schedules {
			st, err := b.Status(ctx, w, sched)
			if err != nil {
				return nil, err
			}
			sched.Overlap, sched.Misfire = sched.Overlap.OrDefault(), sched.Misfire.OrDefault()
			rows = append(rows, scheduleJSON{w.Owner, w.Name, sched, st.Last, st.Next, st.Skipped, st.Node, st.Paused})
		}
	}
	return rows, nil
}

func (e *env) printSchedulesJSON(rows []scheduleJSON) error {
	enc := json.NewEncoder(e.out)
	for _, r := range rows {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) printSchedules(rows []scheduleJSON) error {
	t := e.table()
	fmt.Fprintln(t, "WORKER\tNAME\tSCHEDULE\tLAST\tNEXT")
	for _, r := range rows {
		next := stampedOrNone(r.Next)
		if r.Paused {
			next = "paused"
		}
		fmt.Fprintf(t, "%s/%s\t%s\t%s\t%s\t%s\n", r.Owner, r.Worker, r.Name, scheduleText(r.Schedule), stampedOrNone(r.Last), next)
	}
	return t.Flush()
}

func stampedOrNone(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return stamped(t)
}

// scheduleText is a schedule in a few words.
func scheduleText(s events.Schedule) string {
	text := s.Cron
	if s.TimeZone != "" {
		text += " " + s.TimeZone
	}
	return fmt.Sprintf("%s, overlap %s, misfire %s", text, s.Overlap.OrDefault(), s.Misfire.OrDefault())
}

// waitingJSON is an event that waits, as machines read it.
type waitingJSON struct {
	At      time.Time `json:"at"`
	Owner   string    `json:"owner"`
	Worker  string    `json:"worker"`
	Kind    string    `json:"kind"`
	ID      string    `json:"id"`
	Attempt int       `json:"attempt"`
	Stored  time.Time `json:"stored"`
}

func newWaitingJSON(w *consumer.WaitingEvent) waitingJSON {
	v := w.Event
	return waitingJSON{w.At, v.Owner, v.Worker, v.Kind.String(), v.ID, v.Attempt, v.Stored}
}

func (e *env) printWaiting(list iter.Seq2[*consumer.WaitingEvent, error], asJSON bool) error {
	t := e.table()
	if !asJSON {
		fmt.Fprintln(t, "AT\tWORKER\tKIND\tATTEMPT\tID")
	}
	enc := json.NewEncoder(e.out)
	for w, err := range list {
		if err != nil {
			return err
		}
		v := w.Event
		if asJSON {
			err = enc.Encode(newWaitingJSON(w))
		} else {
			_, err = fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", stamped(w.At), v.Target(), v.Kind, v.Attempt, v.ID)
		}
		if err != nil {
			return err
		}
	}
	return t.Flush()
}
