package cli

import (
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/pinwheel-run/pinwheel/consumer/schedule"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

func (e *env) printSchedulesJSON(rows []control.Schedule) error {
	enc := json.NewEncoder(e.out)
	for _, r := range rows {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) printSchedules(rows []control.Schedule) error {
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

// scheduleText describes a schedule in a few words.
func scheduleText(s events.Schedule) string {
	text := s.Cron
	if s.TimeZone != "" {
		text += " " + s.TimeZone
	}
	return fmt.Sprintf("%s, overlap %s, misfire %s", text, s.Overlap.OrDefault(), s.Misfire.OrDefault())
}

// described describes the events of list.
func described(list iter.Seq2[*schedule.WaitingEvent, error]) iter.Seq2[control.WaitingEvent, error] {
	return func(yield func(control.WaitingEvent, error) bool) {
		for w, err := range list {
			var d control.WaitingEvent
			if err == nil {
				d = control.DescribeWaiting(w)
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func (e *env) printWaiting(list iter.Seq2[control.WaitingEvent, error], asJSON bool) error {
	t := e.table()
	if !asJSON {
		fmt.Fprintln(t, "AT\tWORKER\tKIND\tATTEMPT\tID")
	}
	enc := json.NewEncoder(e.out)
	for w, err := range list {
		if err != nil {
			return err
		}
		if asJSON {
			err = enc.Encode(w)
		} else {
			_, err = fmt.Fprintf(t, "%s\t%s/%s\t%s\t%d\t%s\n", stamped(w.At), w.Owner, w.Worker, w.Kind, w.Attempt, w.ID)
		}
		if err != nil {
			return err
		}
	}
	return t.Flush()
}
