package workers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// Rollout gives a new version its share in steps. The processes of the fleet carry it out.
type Rollout struct {
	ID    int          `json:"id"` // number of the deployment that began it
	Steps []Step       `json:"steps"`
	Step  int          `json:"step"` // position of the current one in Steps
	Guard Guard        `json:"guard,omitzero"`
	State RolloutState `json:"state"`
	// Reason says why it ended before its last step.
	Reason string `json:"reason,omitempty"`
}

// Step is a share and how long it holds before the next one.
type Step struct {
	Percent float64 `json:"percent"`
	For     Millis  `json:"forMs"`
}

// Guard says when the new version is bad. The zero Guard lets every version pass.
type Guard struct {
	// Failures is the share of the new version's runs that may fail, percent: at this share or above, it is bad.
	Failures float64 `json:"failures,omitempty"`
}

// RolloutState is how far a rollout is.
type RolloutState string

// The states of a rollout.
const (
	RolloutRunning    RolloutState = "running"
	RolloutDone       RolloutState = "done"        // the new version has everything
	RolloutRolledBack RolloutState = "rolled-back" // by the guard: the version before has everything again
)

// Running reports whether the processes still have to carry it out.
func (r *Rollout) Running() bool { return r != nil && r.State == RolloutRunning }

// Bounds of a rollout.
const (
	MaxSteps = 20
	minStep  = time.Second
	maxStep  = 7 * 24 * time.Hour
	// defaultStep is how long a step holds that does not say it.
	defaultStep = 5 * time.Minute
)

// Validate returns an error that begins with the name of the field that is wrong.
func (r *Rollout) Validate() error {
	switch {
	case r.ID < 1:
		return fmt.Errorf("id is %d: it is the number of a deployment", r.ID)
	case len(r.Steps) == 0 || len(r.Steps) > MaxSteps:
		return fmt.Errorf("steps has %d: it is 1 to %d", len(r.Steps), MaxSteps)
	case r.Step < 0 || r.Step >= len(r.Steps):
		return fmt.Errorf("step is %d: it is 0 to %d", r.Step, len(r.Steps)-1)
	case !slices.Contains([]RolloutState{RolloutRunning, RolloutDone, RolloutRolledBack}, r.State):
		return fmt.Errorf("state is %q: it is running, done or rolled-back", r.State)
	}
	for i, s := range r.Steps {
		if err := CheckPercent(s.Percent); err != nil {
			return fmt.Errorf("steps[%d]: %w", i, err)
		}
		if s.Percent >= 100 {
			return fmt.Errorf("steps[%d] has 100 %%: a rollout ends with that by itself", i)
		}
		if i > 0 && Points(s.Percent) <= Points(r.Steps[i-1].Percent) {
			return fmt.Errorf("steps[%d] has %v %%, and the one before has %v: shares rise", i, s.Percent, r.Steps[i-1].Percent)
		}
		if d := s.For.Duration(); d < minStep || d > maxStep {
			return fmt.Errorf("steps[%d] holds for %s: it is %s to %s", i, d, minStep, maxStep)
		}
	}
	if f := r.Guard.Failures; f != 0 && CheckPercent(f) != nil {
		return fmt.Errorf("guard.failures is %v %%: it is above 0, at most 100, with at most two digits after the point", f)
	}
	return events.CheckText("reason", r.Reason, events.MaxNote)
}

// ParseSteps reads steps as a command has them: "10%,50%@20s". A step without a time holds as long as the next one that
// has one, or 5 minutes.
func ParseSteps(text string) ([]Step, error) {
	var steps []Step
	for part := range strings.SplitSeq(text, ",") {
		share, hold, timed := strings.Cut(strings.TrimSpace(part), "@")
		percent, err := ParsePercent(share)
		if err != nil {
			return nil, fmt.Errorf("%q: %w; steps look like 10%%,50%%@5m", text, err)
		}
		step := Step{Percent: percent}
		if timed {
			d, err := time.ParseDuration(hold)
			if err != nil {
				return nil, fmt.Errorf("%q: %q is no duration, like 20s or 5m", text, hold)
			}
			if d == 0 { // it would count as not said
				return nil, fmt.Errorf("%q: steps[%d] holds for 0s: it is %s to %s", text, len(steps), minStep, maxStep)
			}
			step.For = Millis(d)
		}
		steps = append(steps, step)
	}
	hold := Millis(defaultStep)
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i].For == 0 {
			steps[i].For = hold
		}
		hold = steps[i].For
	}
	r := Rollout{ID: 1, Steps: steps, State: RolloutRunning}
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return steps, nil
}

// ParsePercent reads a percentage like "10%", "12.5%" or "10".
func ParsePercent(text string) (float64, error) {
	p, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no percentage, like 10%%", text)
	}
	return p, CheckPercent(p)
}

// ParseGuard reads a guard as a command has it: "failures<2%".
func ParseGuard(text string) (Guard, error) {
	share, ok := strings.CutPrefix(strings.ReplaceAll(text, " ", ""), "failures<")
	if !ok {
		return Guard{}, fmt.Errorf("guard %q: it looks like failures<2%%", text)
	}
	p, err := ParsePercent(share)
	if err != nil {
		return Guard{}, fmt.Errorf("guard %q: %w", text, err)
	}
	return Guard{Failures: p}, nil
}

// Outcomes are the ended runs of the two versions of a split, without those that named their version.
type Outcomes struct {
	Base      Runs `json:"base"`
	Candidate Runs `json:"candidate"`
}

// Runs counts ended runs.
type Runs struct {
	Ended  uint64 `json:"ended"`
	Failed uint64 `json:"failed"` // with a failure, or with a fetch reply of status 500 or above
}

// Add adds the counts of another process.
func (o *Outcomes) Add(other Outcomes) {
	o.Base.Ended += other.Base.Ended
	o.Base.Failed += other.Base.Failed
	o.Candidate.Ended += other.Candidate.Ended
	o.Candidate.Failed += other.Candidate.Failed
}

// enoughRuns is how many runs must have ended before a guard judges within a step. At the end of a step it judges what
// there is.
const enoughRuns = 20

// Bad says why the new version is bad by these counts, or "". stepOver: the time of the step has passed.
func (g Guard) Bad(r Runs, stepOver bool) string {
	if g.Failures == 0 || r.Failed == 0 || r.Ended < enoughRuns && !stepOver {
		return ""
	}
	share := float64(r.Failed) * 100 / float64(r.Ended)
	if share < g.Failures {
		return ""
	}
	return fmt.Sprintf("%d of %d runs failed (%.1f %%); the guard wants less than %v %%", r.Failed, r.Ended, share, g.Failures)
}
