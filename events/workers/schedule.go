package workers

import (
	"fmt"
	"strconv"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// Schedule says when a worker's scheduled handler runs by itself. Package internal/lib/cron checks its expression.
type Schedule struct {
	// Name identifies a schedule of a worker, in all its versions. By default the first is "1", the next "2".
	Name string `json:"name"`
	// Cron is an expression of 5 or 6 fields, @every DURATION, or @hourly, @daily, @weekly, @monthly, @yearly.
	Cron string `json:"cron"`
	// TimeZone is a name of the IANA database; "" is UTC.
	TimeZone string         `json:"timeZone,omitempty"`
	Overlap  events.Overlap `json:"overlap,omitempty"`
	Misfire  Misfire        `json:"misfire,omitempty"`
}

// MaxSchedules is the most schedules of a worker.
const MaxSchedules = 100

// Misfire says what happens to ticks that were due while no process ran.
type Misfire string

// The policies of misfire. The zero value means MisfireOnce.
const (
	MisfireSkip Misfire = "skip" // they are skipped
	MisfireOnce Misfire = "once" // the latest of them runs
	MisfireAll  Misfire = "all"  // each of them runs, up to MaxMissed
)

// MaxMissed is the most missed ticks of a schedule that run later. If there are more, the earliest are skipped.
const MaxMissed = 1000

// OrDefault is MisfireOnce for the zero value.
func (m Misfire) OrDefault() Misfire {
	if m == "" {
		return MisfireOnce
	}
	return m
}

// Validate returns an error that names the field that is wrong and what is allowed. It does not parse the expression.
func (s Schedule) Validate() error {
	switch {
	case !events.ValidName(s.Name):
		return fmt.Errorf("name is %.70q: it is 1 to %d of A-Z a-z 0-9 _ -", s.Name, events.MaxName)
	case s.Cron == "":
		return fmt.Errorf("cron is missing: it is an expression like \"0 9 * * 1-5\", \"@every 90s\" or \"@daily\"")
	}
	switch s.Overlap {
	case "", events.OverlapAllow, events.OverlapForbid, events.OverlapReplace:
	default:
		return fmt.Errorf("overlap is %.40q: it is one of allow, forbid, replace", string(s.Overlap))
	}
	switch s.Misfire {
	case "", MisfireSkip, MisfireOnce, MisfireAll:
	default:
		return fmt.Errorf("misfire is %.40q: it is one of skip, once, all", string(s.Misfire))
	}
	return nil
}

// NewTick makes the event of a tick, as it waits in the stream of schedules. If overlap is not allowed, the events of
// all ticks of the schedule have the same Key.
func NewTick(s events.Subjects, owner, worker string, sched Schedule, tick time.Time) *events.Event {
	e := &events.Event{
		Kind: events.Scheduled, Owner: owner, Worker: worker, ID: events.TickID(owner, worker, sched.Name, tick),
		Stored: tick,
		Header: events.Header{
			events.HeaderEventID:       {events.TickID(owner, worker, sched.Name, tick)},
			events.HeaderScheduledTime: {strconv.FormatInt(tick.UnixMilli(), 10)},
			events.HeaderCron:          {sched.Cron},
		},
		Origin: events.Origin{Subject: string(s) + ".events.0." + events.Scheduled.String() + "." + owner + "." + worker},
	}
	switch sched.Overlap.OrDefault() {
	case events.OverlapAllow:
		e.Key = "cron~" + sched.Name + "~" + strconv.FormatInt(tick.Unix(), 10)
	case events.OverlapForbid:
		e.Key = "forbid~" + sched.Name
	case events.OverlapReplace:
		e.Key = "replace~" + sched.Name
	}
	return e
}
