package console

import (
	"context"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
)

// flowPage is the data of the page Flow.
type flowPage struct {
	sampled
	tailForm
	Hour   hour
	Owners []string // to choose from
}

func showFlow(c *call) (*page, error) {
	state, err := c.watcher.after(c.ctx, 0)
	if err != nil {
		return nil, err
	}
	f := flowPage{sampled: state, Hour: hourOf(c.ctx, c.fleet(), "")}
	f.Tail = c.tailOf()
	if f.Owners, err = ownerNames(c.ctx, c.fleet()); err != nil {
		return nil, err
	}
	if f.Tail.Owner == "" && len(f.Owners) == 1 {
		f.Tail.Owner = f.Owners[0]
	}
	return &page{view: "flow", title: "Flow", place: "flow", data: f}, nil
}

// ownerNames are the first owners, as suggestions for a field.
func ownerNames(ctx context.Context, fleet *control.Client) ([]string, error) {
	found, err := control.Ask(ctx, fleet, control.OwnersFind, control.FindOwners{Limit: 100})
	if err != nil {
		return nil, err
	}
	names := make([]string, len(found.Owners))
	for i, o := range found.Owners {
		names[i] = o.Owner
	}
	return names, nil
}

// hour is what pages show of the last hour.
type hour struct {
	flow.Hour
	Owner string // "" = the fleet
	Err   error
}

func hourOf(ctx context.Context, fleet *control.Client, owner string) (h hour) {
	h.Owner = owner
	h.Hour, h.Err = flow.TakeHour(ctx, fleet, owner)
	return h
}

// Line has the values of a figure, oldest first.
func (h hour) Line(figure string) []float64 {
	line := make([]float64, len(h.Minutes))
	for i, m := range h.Minutes {
		switch figure {
		case "events":
			line[i] = float64(m.Events)
		case "failed":
			line[i] = float64(m.Failed)
		case "p50":
			line[i] = of(m.P50)
		case "p99":
			line[i] = of(m.P99)
		}
	}
	return line
}

// Last is the newest minute that is over.
func (h hour) Last() flow.Minute {
	if len(h.Minutes) == 0 {
		return flow.Minute{}
	}
	return h.Minutes[len(h.Minutes)-1]
}

// From is when the oldest minute began.
func (h hour) From() time.Time {
	if len(h.Minutes) == 0 {
		return time.Time{}
	}
	return h.Minutes[0].At
}

// hourSpark draws the minutes of an hour as a line, for a page.
func hourSpark(what, unit string, values []float64) *chart {
	return draw(what, unit, values, axis{time.Minute, control.KeptMinutes})
}
