package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// deployFlags are the flags of deploy that say which share a version gets, and what is said about it.
type deployFlags struct {
	uploadOnly, dryRun, asJSON bool
	percent, gradual, guard    string
	tag, message               string
}

func (d *deployFlags) flags(f *pflag.FlagSet) {
	f.BoolVar(&d.uploadOnly, "upload-only", false, "store the version without making it active: 'pinwheel promote' does that")
	f.StringVar(&d.percent, "percent", "", "`SHARE` of the events for the new version, like 10%; the active version keeps the rest")
	f.StringVar(&d.gradual, "gradual", "", "`STEPS` of that share, like 10%,50%@5m: each holds for its time, and then the version gets everything")
	f.StringVar(&d.guard, "guard", "", "with --gradual: go back when this does not hold, like 'failures<2%'; the exit code is 4 then")
	f.StringVar(&d.tag, "tag", "", "what you call the version, for example its commit")
	f.StringVar(&d.message, "message", "", "what you say about it")
	f.BoolVar(&d.dryRun, "dry-run", false, "do everything but storing")
	f.BoolVar(&d.asJSON, "json", false, "print a JSON object")
}

// complete checks the flags and sets what the request takes from them.
func (d *deployFlags) complete(req *deploy.Request) (err error) {
	ways := 0
	for _, chosen := range []bool{d.uploadOnly, d.percent != "", d.gradual != ""} {
		if chosen {
			ways++
		}
	}
	switch {
	case ways > 1:
		return usage("--upload-only, --percent and --gradual: choose one")
	case d.guard != "" && d.gradual == "":
		return usage("--guard needs --gradual: it is checked between the steps")
	}
	if d.percent != "" {
		if req.Percent, err = workers.ParsePercent(d.percent); err != nil {
			return usage("--percent: %w", err)
		}
	}
	if d.gradual != "" {
		if req.Steps, err = workers.ParseSteps(d.gradual); err != nil {
			return usage("--gradual %w", err)
		}
	}
	if d.guard != "" {
		if req.Guard, err = workers.ParseGuard(d.guard); err != nil {
			return usage("--guard: %w", err)
		}
	}
	if err := events.CheckText("--tag", d.tag, workers.MaxTag); err != nil {
		return usage("%w", err)
	}
	if err := events.CheckText("--message", d.message, events.MaxNote); err != nil {
		return usage("%w", err)
	}
	req.UploadOnly, req.DryRun, req.Tag, req.Note = d.uploadOnly, d.dryRun, d.tag, deploy.Note{By: whoAmI(),
		Message: d.message}
	return nil
}

// whoAmI is what this command says of the person who calls it: nothing checks it.
func whoAmI() string {
	name := os.Getenv("GITHUB_ACTOR")
	if u, err := user.Current(); err == nil && name == "" {
		name = u.Username
	}
	host, _ := os.Hostname()
	return name + "@" + host
}

// inActions reports whether this is a job of GitHub Actions, which shows marked lines beside the source.
func inActions() bool { return os.Getenv("GITHUB_ACTIONS") == "true" }

// annotate prints the author's mistakes for GitHub Actions. One without a line is of its file as a whole.
func annotate(out io.Writer, faults []bundle.Diagnostic) {
	text := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, d := range faults {
		place := "file=" + property.Replace(inWorkspace(d.File))
		if d.Line > 0 {
			place += fmt.Sprintf(",line=%d,col=%d", d.Line, d.Column)
		}
		fmt.Fprintf(out, "::error %s::%s\n", place, text.Replace(d.Text))
	}
}

// inWorkspace is the path of a file from the repository of a job, whose steps may run in other directories. A file
// elsewhere keeps its path.
func inWorkspace(file string) string {
	workspace := os.Getenv("GITHUB_WORKSPACE")
	abs, err := filepath.Abs(file)
	if err != nil || workspace == "" {
		return file
	}
	if rel, err := filepath.Rel(workspace, abs); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return file
}

// deployedJSON is what deploy, promote, rollback and alias print with --json.
type deployedJSON struct {
	Worker     string             `json:"worker"`
	Version    string             `json:"version,omitempty"` // that was deployed
	Handlers   []events.Kind      `json:"handlers,omitempty"`
	Stored     bool               `json:"stored"`  // the version is new
	Changed    bool               `json:"changed"` // the deployment is new
	DryRun     bool               `json:"dryRun,omitempty"`
	Deployment workers.Deployment `json:"deployment"`
	Active     int                `json:"active"`    // processes in which the deployment is in effect
	Processes  int                `json:"processes"` // all processes
}

// tellDeployed waits until the deployment is in effect, follows its rollout, and prints what came of it.
func (e deployer) tellDeployed(ctx context.Context, c *control.Client, d control.DeployedVersion,
	share deployFlags) error {
	told := deployedJSON{Worker: d.Worker, Version: d.Version, Handlers: d.Handlers, Stored: d.Stored, Changed: d.Changed,
		DryRun: share.dryRun, Deployment: d.Deployment}
	name := fmt.Sprintf("%s version %s (%s)", d.Worker, d.Version, kindList(d.Handlers))
	switch {
	case share.asJSON && (share.dryRun || share.uploadOnly):
		return e.Object(told)
	case share.dryRun && d.Deployment.Number > 0 && d.Deployment.PercentOf(d.Version) == 100:
		return e.Say("unchanged %s; nothing is stored", name)
	case share.dryRun:
		return e.Say("would deploy %s; nothing is stored", name)
	case share.uploadOnly && d.Stored:
		return e.Say("uploaded %s; 'pinwheel promote %s %d' makes it active", name, d.Worker, d.Number)
	case share.uploadOnly:
		return e.Say("unchanged %s; it is stored already", name)
	}
	var taken *control.Activation
	err := e.During("waits until processes have "+d.Worker, func() (err error) {
		taken, err = c.Await(ctx, d.Worker, d.Deployment)
		return err
	})
	if err != nil {
		fmt.Fprintf(e.Err, "pinwheel: %s is stored, but %v\n", d.Worker, err)
	}
	told.Active, told.Processes = taken.Counts()
	if !share.asJSON {
		what := "deployed"
		if !d.Stored && !d.Changed {
			what = "unchanged"
		}
		if err := e.Say("%s %s%s, %s", what, name, shareText(d.Deployment, d.Version), taken); err != nil {
			return err
		}
	}
	if d.Deployment.Rollout.Running() {
		if told.Deployment, err = e.followRollout(ctx, c, d.Worker, d.Deployment, share.asJSON); err != nil {
			return err
		}
	}
	if share.asJSON {
		if err := e.Object(told); err != nil {
			return err
		}
	}
	if r := told.Deployment.Rollout; r != nil && r.State == workers.RolloutRolledBack {
		return silent(exitGuard)
	}
	return nil
}

// shareText is the share of a version, when it has not everything.
func shareText(d workers.Deployment, version string) string {
	if p := d.PercentOf(version); p != 100 {
		return fmt.Sprintf(" with %v %% of the events", p)
	}
	return ""
}

// rolloutLook is how often a command looks how far a rollout is.
const rolloutLook = 200 * time.Millisecond

// followRollout prints the steps of a rollout until it has ended, and returns the last deployment of it.
func (e deployer) followRollout(ctx context.Context, c *control.Client, target string, d workers.Deployment,
	quiet bool) (workers.Deployment, error) {
	tick := time.NewTicker(rolloutLook)
	defer tick.Stop()
	for d.Rollout.Running() {
		select {
		case <-ctx.Done():
			return d, leftRollout(ctx, target)
		case <-tick.C:
		}
		holds, err := control.Ask(ctx, c, control.VersionsList, control.WorkerName{Worker: target})
		if err != nil {
			return d, err
		}
		now := holds.Deployment
		switch {
		case now.Number == d.Number:
			continue
		case now.Rollout == nil || now.Rollout.ID != d.Rollout.ID:
			return now, fmt.Errorf("the rollout of %s was replaced by deployment %d of %s", target, now.Number, now.By)
		}
		if d = now; len(d.Before) > 0 {
			select {
			case <-ctx.Done():
				return d, leftRollout(ctx, target)
			case <-time.After(workers.StepDelay): // what is said is in effect
			}
		}
		if quiet {
			continue
		}
		switch last := d.Split[len(d.Split)-1]; d.Rollout.State {
		case workers.RolloutRunning:
			err = e.Say("%s: %s has %v %%", target, last.Version, last.Percent)
		case workers.RolloutDone:
			err = e.Say("%s: %s has everything", target, last.Version)
		case workers.RolloutRolledBack:
			err = e.Say("%s: %s has everything again: %s", target, d.Base(), d.Rollout.Reason)
		}
		if err != nil {
			return d, err
		}
	}
	return d, nil
}

func leftRollout(ctx context.Context, target string) error {
	return fmt.Errorf("the rollout of %s goes on without this command: %w", target, ctx.Err())
}
