package workers

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// Deployment says which versions of a worker run its events.
type Deployment struct {
	// Number is one more for each deployment of the worker. It never goes back.
	Number int `json:"number"`
	// Split is how events are divided: none when no version is active, one version that has all, or the version before
	// and the new one, in this order.
	Split []Share `json:"split"`
	// Before is the split before a step of a rollout. It divides the events that were stored before Effective: so each
	// process knows of the step before an event runs by it, and no key moves back.
	Before []Share `json:"before,omitempty"`
	// Aliases are names that Worker-Version may have in place of a version.
	Aliases map[string]string `json:"aliases,omitempty"`
	// Rollout is how the new version gets its share step by step, or how that ended; nil = all at once.
	Rollout *Rollout `json:"rollout,omitempty"`

	// By is what the deployer says of itself. Nothing checks it.
	By      string    `json:"by,omitempty"`
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
	// Stored is when NATS stored it, by the clock of NATS; zero = it has no record of its own.
	Stored time.Time `json:"-"`
}

// Share is the share of a version.
type Share struct {
	Version string  `json:"version"`
	Percent float64 `json:"percent"` // 0 to 100, two digits after the point
}

// Bounds of a deployment.
const (
	MaxAliases = 32
	MaxTag     = 100 // bytes
)

// StepDelay is the time between the storing of a rollout's step and the first event that runs by it.
const StepDelay = 2 * time.Second

// Points is the number of keys' places that a percentage has.
func Points(percent float64) int { return int(math.Round(percent * events.SplitPoints / 100)) }

// Base is the version that has all events but those of a new one; "" = no version is active.
func (d Deployment) Base() string {
	if len(d.Split) == 0 {
		return ""
	}
	return d.Split[0].Version
}

// Candidate is the new version of a split; the zero Share when there is none.
func (d Deployment) Candidate() Share {
	if len(d.Split) < 2 {
		return Share{}
	}
	return d.Split[1]
}

// BackTo is the version to go back to from d, of a worker that had the former deployments, the oldest first; "" = there
// is none. It is the version before a new one that has a share, else the one that had everything before.
func (d Deployment) BackTo(former []Deployment) string {
	if d.Candidate().Version != "" {
		return d.Base()
	}
	for _, f := range slices.Backward(former) {
		if len(f.Split) == 1 && f.Base() != d.Base() {
			return f.Base()
		}
	}
	return ""
}

// Effective is when Split begins to divide events, by the clock of NATS. Events that were stored earlier go by Before.
func (d Deployment) Effective() time.Time {
	if len(d.Before) == 0 {
		return d.Stored
	}
	return d.Stored.Add(StepDelay)
}

// Runs lists the versions that events may run in without naming them.
func (d Deployment) Runs() []Share { return slices.Concat(d.Split, d.Before) }

// PercentOf is the share of a version; 0 = it runs only events that name it.
func (d Deployment) PercentOf(version string) float64 {
	for _, s := range d.Split {
		if s.Version == version {
			return s.Percent
		}
	}
	return 0
}

// Names reports whether a split or an alias names a version.
func (d Deployment) Names(version string) bool {
	for _, s := range d.Runs() {
		if s.Version == version {
			return true
		}
	}
	for _, v := range d.Aliases {
		if v == version {
			return true
		}
	}
	return false
}

// AliasesOf lists the aliases of a version, sorted.
func (d Deployment) AliasesOf(version string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(d.Aliases)) {
		if d.Aliases[name] == version {
			names = append(names, name)
		}
	}
	return names
}

// Validate returns an error that begins with the name of the field that is wrong and says what is allowed.
func (d Deployment) Validate() error {
	switch {
	case d.Number < 1:
		return fmt.Errorf("number is %d: it is 1 or more", d.Number)
	case len(d.Aliases) > MaxAliases:
		return fmt.Errorf("aliases has %d: at most %d are allowed", len(d.Aliases), MaxAliases)
	}
	if err := checkSplit("split", d.Split); err != nil {
		return err
	}
	if err := checkSplit("before", d.Before); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(d.Aliases)) {
		if err := CheckAlias(name); err != nil {
			return fmt.Errorf("aliases: %w", err)
		}
		if err := checkVersion(d.Aliases[name]); err != nil {
			return fmt.Errorf("aliases.%s: %w", name, err)
		}
	}
	if d.Rollout != nil {
		if err := d.Rollout.Validate(); err != nil {
			return fmt.Errorf("rollout.%w", err)
		}
	}
	if err := events.CheckText("by", d.By, events.MaxNote); err != nil {
		return err
	}
	return events.CheckText("message", d.Message, events.MaxNote)
}

func checkSplit(what string, split []Share) error {
	switch {
	case len(split) > 2:
		return fmt.Errorf("%s has %d versions: it has two at most", what, len(split))
	case len(split) == 2 && split[0].Version == split[1].Version:
		return fmt.Errorf("%s names version %s twice", what, split[0].Version)
	}
	points := 0
	for _, s := range split {
		if err := checkVersion(s.Version); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if err := CheckPercent(s.Percent); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		points += Points(s.Percent)
	}
	if len(split) > 0 && points != events.SplitPoints {
		return fmt.Errorf("%s has %v %% in all: it has 100", what, float64(points)*100/events.SplitPoints)
	}
	return nil
}

// CheckPercent checks a share: above 0, at most 100, two digits after the point. What rounds to nothing, or to
// everything, is none.
func CheckPercent(p float64) error {
	if !(p > 0 && p <= 100) || math.Abs(p*100-math.Round(p*100)) > 1e-6 || Points(p) == 0 ||
		p < 100 && Points(p) == events.SplitPoints {
		return fmt.Errorf("percentage %v: it is above 0, at most 100, with at most two digits after the point", p)
	}
	return nil
}

var (
	aliasName   = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
	versionName = regexp.MustCompile(`^[1-9][0-9]{0,17}-[0-9a-f]{12}$`)
)

// maxAlias is the longest alias, bytes: it fits a label of a host name with the names around it.
const maxAlias = 30

// CheckAlias checks the name of an alias. It can be neither a version nor the number of one.
func CheckAlias(name string) error {
	if len(name) > maxAlias || !aliasName.MatchString(name) {
		return fmt.Errorf("alias %q: it begins with a letter, has a-z 0-9 and single hyphens, and at most %d of them", name, maxAlias)
	}
	return nil
}

func checkVersion(v string) error {
	if !versionName.MatchString(v) {
		return fmt.Errorf("version %q: it is a number, a hyphen and 12 hex digits", v)
	}
	return nil
}
