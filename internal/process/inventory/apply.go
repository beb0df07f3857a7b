package inventory

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/internal/env/bindings"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// Change is a field of a stream, consumer or bucket that is not as a configuration wants it.
type Change struct {
	Resource string `json:"resource"`
	Field    string `json:"field"` // as in JetStream's JSON
	Now      string `json:"now"`
	Wanted   string `json:"wanted"`
	Variable string `json:"variable,omitempty"` // of the environment, that decides it; "" = the binary does
	Lost     string `json:"lost,omitempty"`     // what the change would lose
	Final    bool   `json:"final,omitempty"`    // JetStream cannot change it in place
}

// PlanChanges says what ApplyChanges would change in the resources of the fleet at nc. It changes nothing, and leaves
// out what is missing: a process that starts creates it.
func PlanChanges(ctx context.Context, nc *nats.Conn, cfg config.Config) ([]Change, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	wanted, err := wanted(ctx, js, cfg, nc.MaxPayload())
	if err != nil {
		return nil, err
	}
	plan, err := resources.Plan(ctx, js, wanted, consumer.Removed)
	list := make([]Change, len(plan))
	for i, c := range plan {
		list[i] = Change{c.Resource.String(), c.Field, c.Have, c.Want, VariableOf(c.Resource, c.Field), c.Lost, c.Final}
	}
	return list, err
}

// wanted are all resources that a configuration decides: those that each fleet has, and the streams of owners.
func wanted(ctx context.Context, js jetstream.JetStream, cfg config.Config,
	maxPayload int64) ([]resources.Resource, error) {
	owners, err := bindings.Unused(ctx, js, cfg.Replicas)
	if err != nil {
		return nil, fmt.Errorf("streams of owners: %w", err)
	}
	return append(Resources(cfg, maxPayload), owners...), nil
}

// ApplyChanges makes the resources of the fleet at nc what cfg wants, also where that loses what is stored. What cannot
// be changed is left out and in the error.
func ApplyChanges(ctx context.Context, nc *nats.Conn, cfg config.Config) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	r := &resources.Reconciler{JS: js, Apply: true, Log: zerolog.Nop()}
	all, err := wanted(ctx, js, cfg, nc.MaxPayload())
	errs := []error{err}
	for _, want := range all {
		f, err := resources.Look(ctx, js, want)
		if err == nil && !f.Missing && len(f.Drift) > 0 {
			err = r.Reconcile(ctx, want)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
