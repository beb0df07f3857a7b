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

// Cancel ends the events of this id that wait for their DeliverAt or DeliverAfter, or for their next run. They will not run, and nobody
// is told, so a Call of one goes on until its context ends. It returns how many there were: 0 when there is no such event, or when its time is less than a
// second away. ErrNoStream means that no process of the fleet answers, a *events.Failure of reason rate that the owner cancels too many in a second.
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
