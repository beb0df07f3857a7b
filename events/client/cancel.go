package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/events"
)

// Cancel ends the events with this id that wait for their DeliverAt or DeliverAfter, or for their next run. They do not
// run and have no reply, so a Call of such an event waits until its context ends. Cancel returns the number of these
// events: 0 when there is none, or when its time is less than a second away. ErrNoStream means that no process of the
// fleet answers. An *events.Failure with reason rate means that the owner cancels too many per second.
func (c *Client) Cancel(ctx context.Context, owner, worker, id string) (int, error) {
	m, err := c.nc.RequestWithContext(ctx, c.subjects.Unschedule(owner, worker), []byte(id))
	if errors.Is(err, nats.ErrNoResponders) {
		err = ErrNoStream
	}
	var answer events.Unscheduled
	if err == nil {
		err = json.Unmarshal(m.Data, &answer)
	}
	if message, rate := strings.CutPrefix(answer.Error, string(events.ReasonRate)+": "); err == nil && rate {
		err = events.NewFailure(events.ReasonRate, message, "")
	} else if err == nil && answer.Error != "" {
		err = fmt.Errorf("%w: %s", ErrMalformed, answer.Error)
	}
	if err != nil {
		return 0, fmt.Errorf("cancel event %.40q of %s/%s: %w", id, owner, worker, err)
	}
	return answer.Cancelled, nil
}
