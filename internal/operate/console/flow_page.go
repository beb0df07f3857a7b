package console

import (
	"context"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// flowPage is the data of the page Flow.
type flowPage struct {
	sampled
	tailForm
	Owners []string // to choose from
}

func showFlow(c *call) (*page, error) {
	state, err := c.watcher.after(c.ctx, 0)
	if err != nil {
		return nil, err
	}
	f := flowPage{sampled: state}
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
