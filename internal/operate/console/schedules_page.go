package console

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// schedulesPage is the data of the page Schedules.
type schedulesPage struct {
	control.ScheduleList
	Waiting control.WaitingList
	Query   url.Values
}

// Link is the query of the page, to come back to after an action.
func (p schedulesPage) Link() string { return strings.TrimSuffix(with(p.Query), "?") }

// scheduleRows is the data of a table of schedules.
type scheduleRows struct {
	Rows     []control.Schedule
	Operates bool
	CSRF     string
	Back     string // page to go to after an action
	Named    bool   // rows name their worker
}

func listSchedules(ctx context.Context, fleet *control.Client, in inputs) (*page, error) {
	q := in.query()
	p := schedulesPage{Query: q}
	show := func(err error) (*page, error) {
		return &page{view: "schedules", title: "Schedules", place: "schedules", data: p}, err
	}
	var err error
	if p.ScheduleList, err = control.Ask(ctx, fleet, control.SchedulesList, control.ListWorkers{Owner: q.Get("owner"),
		After: q.Get("after"), Limit: pageSize}); err != nil {
		return show(err)
	}
	r := control.ListWaiting{Owner: q.Get("owner"), Worker: q.Get("worker"), Limit: pageSize}
	if text := q.Get("waiting"); text != "" {
		if r.After, err = strconv.ParseUint(text, 10, 64); err != nil {
			return show(wrongForm("waiting", text, "it is a sequence"))
		}
	}
	p.Waiting, err = control.Ask(ctx, fleet, control.SchedulesWaiting, r)
	return show(err)
}

func (in inputs) scheduleName() control.ScheduleName {
	return control.ScheduleName{Worker: in.form("worker"), Name: in.form("name")}
}

func pauseSchedule(c *call) (*page, error) {
	name := c.scheduleName()
	if _, err := control.Ask(c.ctx, c.fleet(), control.SchedulesPause, name); err != nil {
		return nil, err
	}
	return c.done(within(c.form("back")), "Schedule %s of %s is paused.", name.Name, name.Worker)
}

func resumeSchedule(c *call) (*page, error) {
	name := c.scheduleName()
	if _, err := control.Ask(c.ctx, c.fleet(), control.SchedulesResume, name); err != nil {
		return nil, err
	}
	return c.done(within(c.form("back")), "Schedule %s of %s ticks again.", name.Name, name.Worker)
}

func cancelWaiting(c *call) (*page, error) {
	done, err := control.Ask(c.ctx, c.fleet(), control.SchedulesCancel, control.CancelWaiting{Worker: c.form("worker"),
		ID: c.form("id")})
	if err != nil {
		return nil, err
	}
	return c.done(within(c.form("back")), "%d waiting events with the id %s are cancelled.", done.Cancelled, c.form("id"))
}
