package fleet

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

const (
	// rolloutEvery is how often a process looks at the rollouts.
	rolloutEvery = 500 * time.Millisecond
	// rolloutStandby is how much later than the first process of the fleet another one makes a step, at least. It waits a
	// random time up to as long again.
	rolloutStandby = 2 * time.Second
	// outcomesWait is how long the processes have to tell their outcomes.
	outcomesWait = 2 * time.Second
)

// rollouts makes the steps of rollouts.
type rollouts struct{ *Process }

// run makes steps until ctx is done. Every process does that: the first of the fleet in time,
// the others when it has not. The deployment record says who was first, so that each step is made once.
func (r rollouts) run(ctx context.Context) {
	tick := time.NewTicker(rolloutEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, in := range r.deployed.catalog.Rollouts() {
			if err := r.advance(ctx, in); err != nil && ctx.Err() == nil {
				r.log.Warn().Err(err).Str("worker", in.Target()).Msg("a step of a rollout could not be made; trying again")
			}
		}
	}
}

// advance makes the step of one rollout, if it is due.
func (r rollouts) advance(ctx context.Context, in workers.Installation) error {
	p, rollout := r.Process, in.Deployment.Rollout
	due := in.Deployment.Effective().Add(rollout.Steps[rollout.Step].For.Duration())
	late := time.Duration(0)
	if all := p.members.known(); all[0] != p.members.self {
		late = rolloutStandby + rand.N(rolloutStandby)
	}
	over := !p.rooms.consumer.Now().Before(due.Add(late))
	guarded := rollout.Guard != (workers.Guard{})
	if !over && (late > 0 || !guarded) {
		return nil
	}
	bad := ""
	if guarded {
		outcomes, err := control.AskOutcomes(ctx, p.link.nc, p.cfg.Prefix, in, len(p.members.known()), outcomesWait)
		if err != nil {
			return err
		}
		if bad = rollout.Guard.Bad(outcomes.Candidate, over); bad == "" && (!over || outcomes.Candidate.Ended == 0) {
			return nil // a step in which the new version ran nothing proves nothing
		}
	}
	d, changed, err := p.deployed.store.Redeploy(ctx, in.Owner, in.Name, deploy.Advance(in.Deployment, bad))
	var superseded *deploy.SupersededError
	switch {
	case errors.As(err, &superseded), errors.Is(err, deploy.ErrNotFound):
		return nil
	case err != nil:
		return err
	case changed && bad != "":
		p.log.Warn().Str("worker", in.Target()).Int("deployment", d.Number).Str("active", d.Base()).Str("reason", bad).
			Msg("rollout went back")
	case changed:
		p.log.Info().Str("worker", in.Target()).Int("deployment", d.Number).Interface("split", d.Split).Msg("rollout went on")
	}
	return nil
}
