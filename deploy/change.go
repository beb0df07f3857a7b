package deploy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// Change makes the next deployment of a worker from the one that holds. It gets the worker's kept versions without
// their code, and the former deployments, oldest first. It is called again when another change was first. Number and
// time are set afterwards.
type Change func(in workers.Installation, former []workers.Deployment) (workers.Deployment, error)

// errNothingToChange ends a change that is made already.
var errNothingToChange = errors.New("nothing to change")

// Redeploy changes the deployment of a worker. changed is false when it is what the change wants already. Any process
// and command may do so at the same time; each change is made to the result of the one before. The error is a
// *SupersededError when a version was deployed at the same time, which is active.
func (s *Store) Redeploy(ctx context.Context, owner, name string,
	change Change) (d workers.Deployment, changed bool, err error) {
	return s.redeploy(ctx, owner, name, change, func(d *workers.Deployment) { d.Number, d.At = d.Number+1, time.Now() })
}

// redeploy is Redeploy with a function that sets number and time of the next deployment, which has those of the one
// before.
func (s *Store) redeploy(ctx context.Context, owner, name string, change Change,
	number func(*workers.Deployment)) (d workers.Deployment, changed bool, err error) {
	tries := conflicts()
	for {
		k, err := s.found(ctx, owner, name)
		if err != nil {
			return d, false, err
		}
		former, err := s.Deployments(ctx, owner, name)
		if err != nil {
			return d, false, err
		}
		before := k.installation()
		held := before
		held.Deployment.Before = nil // it is of the step that stored it only
		d, err := change(held, former)
		if errors.Is(err, errNothingToChange) {
			return before.Deployment, false, nil
		}
		if err != nil {
			return before.Deployment, false, fmt.Errorf("%s/%s: %w", owner, name, err)
		}
		d.Number, d.At = before.Deployment.Number, before.Deployment.At
		number(&d)
		err = s.putDeployment(ctx, owner, name, d, k)
		if err == nil {
			s.routes.settle(ctx, owner, name)
			return d, true, s.superseded(ctx, owner, name, d, k.revision)
		}
		if wait := tries.NextBackOff(); !isConflict(err) || wait == backoff.Stop || !sleep(ctx, wait) {
			return d, false, err
		}
	}
}

// SupersededError says that a version was deployed at the same time as a change, and is active.
type SupersededError struct{ Version string }

func (e *SupersededError) Error() string {
	return fmt.Sprintf("version %s was deployed at the same time and is active", e.Version)
}

// superseded returns a *SupersededError when a version that was stored after revision seen holds in place of d.
func (s *Store) superseded(ctx context.Context, owner, name string, d workers.Deployment, seen uint64) error {
	k, err := s.kept(ctx, owner, name)
	if err != nil {
		return err
	}
	if version := k.supersedes(d, seen); version != "" {
		return &SupersededError{version}
	}
	return nil
}

// ChangeError says why a change does not fit what the worker has.
type ChangeError struct{ Text string }

func (e *ChangeError) Error() string { return e.Text }

func misfit(format string, args ...any) error { return &ChangeError{fmt.Sprintf(format, args...)} }

// Note is what a person says about a change.
type Note struct {
	By      string
	Message string
}

// Promote gives a version a share, or everything. The version is named as for Store.Get. A share of less than 100 needs
// another version that has everything, or the same two versions in a split already. It is refused with a *GoneError
// when something that the version names is gone, unless force.
func (s *Store) Promote(ctx context.Context, version string, percent float64, force bool, n Note) Change {
	return func(in workers.Installation, _ []workers.Deployment) (workers.Deployment, error) {
		w, err := versionOf(in, version)
		if err != nil {
			return workers.Deployment{}, err
		}
		if !force {
			if err := s.checkBindings(ctx, w); err != nil {
				return workers.Deployment{}, err
			}
		}
		// No change is made when another worker has one. If the change fails, the next one gives them up.
		if err := s.routes.take(ctx, w, promotion, false); err != nil {
			return workers.Deployment{}, err
		}
		return promoted(in.Deployment, w.Version, percent, n)
	}
}

func promoted(before workers.Deployment, version string, percent float64, n Note) (workers.Deployment, error) {
	d := before
	d.By, d.Message, d.Rollout = n.By, n.Message, nil
	base, candidate := before.Base(), before.Candidate()
	if percent == 100 {
		if only(before, version) {
			return d, errNothingToChange
		}
		d.Split = []workers.Share{{Version: version, Percent: 100}}
		return d, nil
	}
	if err := workers.CheckPercent(percent); err != nil {
		return d, misfit("%v", err)
	}
	switch {
	case base == "":
		return d, misfit("no version is active: %s cannot have a share beside it; give it 100 %%", version)
	case version == base:
		return d, misfit("version %s is the one that a new version takes its share from: name the new version", version)
	case candidate.Version != "" && candidate.Version != version:
		return d, misfit("versions %s and %s share the events: give one of them 100 %% first", base, candidate.Version)
	}
	d.Split = []workers.Share{{Version: base, Percent: rest(percent)}, {Version: version, Percent: percent}}
	if slices.Equal(d.Split, before.Split) && before.Rollout == nil {
		return d, errNothingToChange
	}
	return d, nil
}

// rest is what is left of 100, with two digits after the point.
func rest(percent float64) float64 { return float64(10_000-workers.Points(percent)) / 100 }

// Rollback gives a version everything. Without a version, that is the version before a new one that has a share, else
// the one that had everything before. It is refused with a *GoneError when something that the version names is gone,
// unless force.
func (s *Store) Rollback(ctx context.Context, version string, force bool, n Note) Change {
	return func(in workers.Installation, former []workers.Deployment) (workers.Deployment, error) {
		if version == "" {
			if version = in.Deployment.BackTo(former); version == "" {
				return workers.Deployment{}, misfit("no version had everything before: name the one to go back to")
			}
		}
		return s.Promote(ctx, version, 100, force, n)(in, former)
	}
}

// GoneError says that a version needs something that is gone, or that its owner is no longer granted.
type GoneError struct {
	Version string
	What    string // a clause: what the version names, where, and what became of it
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("version %s is not activated: %s", e.Version, e.What)
}

// checkBindings returns a *GoneError for the first thing that w names and that is gone.
func (s *Store) checkBindings(ctx context.Context, w *workers.Worker) error {
	policy, err := s.policies.Get(ctx, w.Owner)
	if err != nil {
		return err
	}
	for _, err := range []error{policy.MayReach(w.Bindings), policy.MayRoute(w.HTTP),
		policy.MayConsumeAll(w.Sources)} {
		if err != nil {
			return &GoneError{w.Version, err.Error()}
		}
	}
	seen := map[string]bool{w.Name: true}
	for _, t := range targets(w) {
		if seen[t.worker] {
			continue
		}
		seen[t.worker] = true
		if _, err := s.found(ctx, w.Owner, t.worker); errors.Is(err, ErrNotFound) {
			return &GoneError{w.Version, fmt.Sprintf("worker %s/%s, which its %s needs, is gone", w.Owner, t.worker, t.by)}
		} else if err != nil {
			return err
		}
	}
	missing, err := s.secrets.Missing(ctx, w.Owner, w.Name, w.Secrets)
	if err == nil && len(missing) > 0 {
		err = &GoneError{w.Version, fmt.Sprintf("secret %s, which its env.%s needs, is gone", missing[0], missing[0])}
	}
	return err
}

// target is a worker that another one names.
type target struct{ worker, by string } // by is what names it

// targets are the workers that w names. All are of its owner.
func targets(w *workers.Worker) (list []target) {
	for _, b := range w.Env() {
		switch b.Kind {
		case workers.BindingQueue:
			list = append(list, target{b.Value, "env." + b.Name})
		case workers.BindingService:
			if t, err := events.ParseServiceTarget(b.Value); err == nil { // it was checked when the version was stored
				list = append(list, target{t.Worker, "env." + b.Name})
			}
		}
	}
	if w.OnDead != nil && w.OnDead.Worker != "" {
		list = append(list, target{w.OnDead.Worker, "onDeadLetter.worker"})
	}
	return list
}

// Advance makes the next step of the rollout of a deployment, or gives everything back to the version before if bad
// says why. It changes nothing when the deployment does not hold any more.
func Advance(from workers.Deployment, bad string) Change {
	return func(in workers.Installation, _ []workers.Deployment) (workers.Deployment, error) {
		d := in.Deployment
		if d.Number != from.Number || !d.Rollout.Running() {
			return d, errNothingToChange
		}
		r := *d.Rollout
		base, candidate := d.Base(), d.Candidate().Version
		switch {
		case bad != "":
			r.State, r.Reason = workers.RolloutRolledBack, bad
			d.Split = []workers.Share{{Version: base, Percent: 100}}
		case r.Step+1 == len(r.Steps):
			r.State = workers.RolloutDone
			d.Split = []workers.Share{{Version: candidate, Percent: 100}}
		default:
			r.Step++
			percent := r.Steps[r.Step].Percent
			d.Split = []workers.Share{{Version: base, Percent: rest(percent)}, {Version: candidate, Percent: percent}}
		}
		if bad == "" {
			d.Before = in.Deployment.Split
		}
		d.Rollout = &r
		return d, nil
	}
}

// SetAlias gives a version a name that Worker-Version may have. With an empty version it removes the name.
func SetAlias(alias, version string) Change {
	return func(in workers.Installation, _ []workers.Deployment) (workers.Deployment, error) {
		d := in.Deployment
		if err := workers.CheckAlias(alias); err != nil {
			return d, misfit("%v", err)
		}
		d.Aliases = maps.Clone(d.Aliases)
		if version == "" {
			if _, ok := d.Aliases[alias]; !ok {
				return d, misfit("there is no alias %q", alias)
			}
			delete(d.Aliases, alias)
			return saying(d, fmt.Sprintf("alias %s removed", alias)), nil
		}
		w, err := versionOf(in, version)
		if err != nil {
			return d, err
		}
		if d.Aliases[alias] == w.Version {
			return d, errNothingToChange
		}
		if d.Aliases == nil {
			d.Aliases = map[string]string{}
		}
		d.Aliases[alias] = w.Version
		return saying(d, fmt.Sprintf("alias %s is %s", alias, w.Version)), nil
	}
}

// saying is a deployment whose message says what it changed: what was said of the one before is not about it. The steps
// of a rollout that is under way keep what was said of the rollout.
func saying(d workers.Deployment, text string) workers.Deployment {
	if !d.Rollout.Running() {
		d.By, d.Message = "", text
	}
	return d
}

// versionOf finds a version by its whole name, its number, or an alias.
func versionOf(in workers.Installation, version string) (*workers.Worker, error) {
	if of, ok := in.Deployment.Aliases[version]; ok {
		version = of
	}
	for _, w := range in.Versions {
		if version == w.Version || version == fmt.Sprint(w.Number) {
			return w, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no version %q, or no longer", ErrNoVersion, version)
}

// conflicts says how long to wait when another change was faster.
func conflicts() backoff.BackOff {
	return backoff.WithMaxRetries(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(2*time.Millisecond), backoff.WithMaxInterval(100*time.Millisecond)), conflictTries)
}
