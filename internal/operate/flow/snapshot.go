package flow

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// Snapshot is what a fleet said at one moment.
type Snapshot struct {
	At      time.Time // by this machine's clock
	Flows   []control.Flow
	Missing []control.Member // processes that another one knows, and that did not answer
	Stored  control.FleetStats
	Paused  uint64  // of the parked events, those that wait until they are resumed; only Scale needs it
	Limits  []Limit // what a fleet has of owners and workers that have a limit of the whole fleet
}

// ErrNoFleet is the error when no process answers.
var ErrNoFleet = errors.New("no process of a fleet answers: start one with pinwheel serve, or see PINWHEEL_PREFIX")

// Take asks all processes of the fleet, for at most a second, and what is stored.
func Take(ctx context.Context, client *control.Client) (s Snapshot, err error) {
	s.At = time.Now()
	if s.Flows, s.Missing, err = client.Flows(ctx); errors.Is(err, nats.ErrNoResponders) {
		return s, ErrNoFleet
	}
	if err != nil {
		return s, fmt.Errorf("ask the processes: %w", err)
	}
	if s.Stored, err = control.Ask(ctx, client, control.GetStats, control.None{}); err != nil {
		return s, fmt.Errorf("ask what is stored: %w", err)
	}
	return s, nil
}

// TakeOf asks all processes of the fleet, for at most a second, what the workers of an owner do. worker is the only one
// that is asked for; "" = all.
func TakeOf(ctx context.Context, client *control.Client, owner, worker string) (s Snapshot, err error) {
	s.At = time.Now()
	list, missing, err := control.AskWorkersFlows(ctx, client, control.AskWorkersFlow{Owner: owner, Worker: worker})
	if errors.Is(err, nats.ErrNoResponders) {
		return s, ErrNoFleet
	}
	if err != nil {
		return s, fmt.Errorf("ask the processes: %w", err)
	}
	for _, one := range list {
		s.Flows = append(s.Flows, control.Flow{
			Member: one.Member, At: one.At, Queued: one.Queued, Running: one.Running, Failed: one.Failed, Duration: one.Duration,
			Owners: []control.OwnerFlow{one.OwnerFlow}, Workers: one.Workers,
		})
	}
	s.Missing = missing
	return s, nil
}
