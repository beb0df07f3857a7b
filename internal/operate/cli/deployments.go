package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// deploymentCommands are the commands that change or show deployments.
type deploymentCommands struct{ *env }

func (e deploymentCommands) root() *cobra.Command {
	return group(cobra.Command{
		Use: "deployments", Short: "List which versions of a worker were active", Example: "  pinwheel deployments ls acme/webhook",
	}, e.ls())
}

func (e deploymentCommands) ls() *cobra.Command {
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls OWNER/WORKER", Short: "List the deployments of a worker, the one in effect first", Args: cobra.ExactArgs(1),
		Long:    "Lists the kept deployments of a worker, the one in effect first. BY is what the deployer said of itself: nothing checks it.",
		Example: "  pinwheel deployments ls acme/webhook",
	}, func(ctx context.Context, args []string) error {
		name, err := target(args[0])
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			d, err := control.Ask(ctx, c, control.DeploymentsList, name)
			if err != nil {
				return listsThem(err)
			}
			if !asJSON {
				slices.Reverse(d.Deployments)
			}
			p := e.List(asJSON, "NUMBER", "VERSIONS", "AT", "BY", "MESSAGE")
			for i, one := range d.Deployments {
				note := noteText(d.Deployments, i, asJSON)
				err = cmp.Or(err, p.Add(one, one.Number, splitText(one), stamped(one.At), one.By, note))
			}
			return errors.Join(err, p.End())
		})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line, the oldest deployment first")
	return c
}

// splitText is the split of a deployment for people.
func splitText(d workers.Deployment) string {
	if len(d.Split) == 0 {
		return "none active"
	}
	parts := make([]string, len(d.Split))
	for i, s := range d.Split {
		parts[i] = fmt.Sprintf("%s %v %%", s.Version, s.Percent)
	}
	return strings.Join(parts, ", ")
}

// noteText is the message of one of several deployments, and what became of its rollout by it. A deployment after a
// rollout, as of an alias, keeps what that was. oldestFirst says how they are sorted.
func noteText(all []workers.Deployment, i int, oldestFirst bool) string {
	d, before := all[i], i+1
	if oldestFirst {
		before = i - 1
	}
	r := d.Rollout
	switch {
	case r == nil:
		return d.Message
	case before >= 0 && before < len(all) && reflect.DeepEqual(all[before].Rollout, r):
		return d.Message
	case r.State == workers.RolloutRunning:
		return strings.TrimSpace(fmt.Sprintf("%s [step %d of %d]", d.Message, r.Step+1, len(r.Steps)))
	case r.State == workers.RolloutRolledBack:
		return strings.TrimSpace(fmt.Sprintf("%s [went back: %s]", d.Message, r.Reason))
	}
	return d.Message
}

// changeFlags are the flags of commands that change a deployment.
type changeFlags struct {
	message string
	asJSON  bool
}

func (c *changeFlags) add(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&c.message, "message", "", "what you say about it")
	cmd.Flags().BoolVar(&c.asJSON, "json", false, "print a JSON object")
	return cmd
}

// note checks the message.
func (c *changeFlags) note() (control.Note, error) {
	if err := events.CheckText("--message", c.message, events.MaxNote); err != nil {
		return control.Note{}, usage("%w", err)
	}
	return control.Note{By: whoAmI(), Message: c.message}, nil
}

func (e deploymentCommands) promote() *cobra.Command {
	var flags changeFlags
	force := false
	c := flags.add(e.command(cobra.Command{
		Use: "promote OWNER/WORKER VERSION[@SHARE]", Short: "Give a version all events, or a share", Args: cobra.ExactArgs(2),
		Long: "Gives a stored version all events, or a share of them: the active version keeps the rest. An event goes to the same version as\n" +
			"long as the share stays, chosen by its Version-Key, else by its Event-Id. A higher share takes no key away from the new version.\n" +
			"It ends a rollout that is under way. It is refused when the version names a worker or a secret that is gone,\n" +
			"or a subject or a host that its owner is no longer granted.",
		Example: "  pinwheel promote acme/webhook 13@25%\n  pinwheel promote acme/webhook 13",
	}, func(ctx context.Context, args []string) error {
		note, err := flags.note()
		if err != nil {
			return err
		}
		version, share, shared := strings.Cut(args[1], "@")
		percent := 100.0
		if shared {
			if percent, err = workers.ParsePercent(share); err != nil {
				return usage("%s: %w", args[1], err)
			}
		}
		r := control.Promote{WorkerName: control.WorkerName{Worker: args[0]}, Version: version, Percent: percent,
			Force: force, Note: note}
		return redeploy(ctx, e, control.DeploymentsPromote, r, r.WorkerName, "promoted", flags.asJSON)
	}))
	c.Flags().BoolVar(&force, "force", false, "also when something that the version names is gone")
	return c
}

func (e deploymentCommands) rollback() *cobra.Command {
	var flags changeFlags
	force := false
	c := flags.add(e.command(cobra.Command{
		Use: "rollback OWNER/WORKER [VERSION]", Short: "Give all events to the version before", Args: cobra.RangeArgs(1, 2),
		Long: "Gives all events to an older version. Without VERSION, that is the version before a new one that has a share, else the one that had\n" +
			"everything before. Events that run end in the version in which they began. A rollback makes no new version.\n" +
			"It is refused when the version names a worker or a secret that is gone,\n" +
			"or a subject or a host that its owner is no longer granted.",
		Example: "  pinwheel rollback acme/webhook\n  pinwheel rollback acme/webhook 12 --message 'orders were lost'",
	}, func(ctx context.Context, args []string) error {
		note, err := flags.note()
		if err != nil {
			return err
		}
		version := ""
		if len(args) == 2 {
			version = args[1]
		}
		r := control.Rollback{WorkerName: control.WorkerName{Worker: args[0]}, Version: version, Force: force, Note: note}
		return redeploy(ctx, e, control.DeploymentsRollback, r, r.WorkerName, "rolled back", flags.asJSON)
	}))
	c.Flags().BoolVar(&force, "force", false, "also when something that the version names is gone")
	return c
}

func (e deploymentCommands) alias() *cobra.Command {
	return group(cobra.Command{
		Use: "alias", Short: "Name versions, so that events can ask for them by that name", Example: "  pinwheel alias set acme/webhook staging 13",
	}, e.listAliases(), e.setAlias(), e.removeAlias())
}

func (e deploymentCommands) listAliases() *cobra.Command {
	asJSON := false
	c := e.command(cobra.Command{
		Use: "ls OWNER/WORKER", Short: "List the aliases of a worker", Args: cobra.ExactArgs(1),
		Example: "  pinwheel alias ls acme/webhook",
	}, func(ctx context.Context, args []string) error {
		name, err := target(args[0])
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			found, err := control.Ask(ctx, c, control.VersionsList, name)
			if err != nil {
				return listsThem(err)
			}
			return e.printAliases(found.Deployment, asJSON)
		})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

func (e deploymentCommands) printAliases(d workers.Deployment, asJSON bool) (err error) {
	p := e.List(asJSON, "ALIAS", "VERSION")
	for _, alias := range slices.Sorted(maps.Keys(d.Aliases)) {
		one := struct {
			Alias   string `json:"alias"`
			Version string `json:"version"`
		}{alias, d.Aliases[alias]}
		err = cmp.Or(err, p.Add(one, one.Alias, one.Version))
	}
	return errors.Join(err, p.End())
}

func (e deploymentCommands) setAlias() *cobra.Command {
	asJSON := false
	c := e.command(cobra.Command{
		Use: "set OWNER/WORKER NAME VERSION", Short: "Name a version", Args: cobra.ExactArgs(3),
		Long:    "Names a stored version. An event with the header Worker-Version: NAME runs in it, whatever is active. A name that exists is moved.",
		Example: "  pinwheel alias set acme/webhook staging 13\n  pinwheel send fetch acme/webhook --header 'Worker-Version: staging'",
	}, func(ctx context.Context, args []string) error {
		if err := workers.CheckAlias(args[1]); err != nil {
			return usage("%w", err)
		}
		r := control.Alias{WorkerName: control.WorkerName{Worker: args[0]}, Alias: args[1], Version: args[2]}
		return redeploy(ctx, e, control.DeploymentsAlias, r, r.WorkerName, "alias "+args[1]+" set:", asJSON)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

func (e deploymentCommands) removeAlias() *cobra.Command {
	asJSON := false
	c := e.command(cobra.Command{
		Use: "rm OWNER/WORKER NAME", Short: "Remove the name of a version", Args: cobra.ExactArgs(2),
		Example: "  pinwheel alias rm acme/webhook staging",
	}, func(ctx context.Context, args []string) error {
		if err := workers.CheckAlias(args[1]); err != nil {
			return usage("%w", err)
		}
		r := control.Alias{WorkerName: control.WorkerName{Worker: args[0]}, Alias: args[1]}
		return redeploy(ctx, e, control.DeploymentsAlias, r, r.WorkerName, "alias "+args[1]+" removed:", asJSON)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

// redeploy changes the deployment of a worker and waits until that is in effect.
func redeploy[Q any](ctx context.Context, e deploymentCommands, change control.Endpoint[Q, control.Redeployed], r Q,
	of control.WorkerName, done string, asJSON bool) error {
	if _, err := target(of.Worker); err != nil {
		return err
	}
	return e.withFleet(ctx, func(c *control.Client) error {
		changed, err := control.Ask(ctx, c, change, r)
		if err != nil {
			return listsVersions(err, of.Worker)
		}
		var taken *control.Activation
		err = e.During("waits until processes have "+of.Worker, func() (err error) {
			taken, err = c.Await(ctx, of.Worker, changed.Deployment)
			return err
		})
		if err != nil {
			fmt.Fprintf(e.Err, "pinwheel: the deployment of %s is stored, but %v\n", of.Worker, err)
		}
		return e.tellRedeployed(of.Worker, done, changed, taken, asJSON)
	})
}

func (e deploymentCommands) tellRedeployed(target, done string, r control.Redeployed, taken *control.Activation,
	asJSON bool) error {
	if asJSON {
		told := deployedJSON{Worker: target, Changed: r.Changed, Deployment: r.Deployment}
		told.Active, told.Processes = taken.Counts()
		return e.Object(told)
	}
	if !r.Changed {
		done = "unchanged"
	}
	return e.Say("%s %s: %s, %s", done, target, splitText(r.Deployment), taken)
}
