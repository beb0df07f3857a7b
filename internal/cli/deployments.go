package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

func newDeploymentsCommand(e *env) *cobra.Command {
	return group(cobra.Command{
		Use: "deployments", Short: "List which versions of a worker were active", Example: "  pinwheel deployments ls acme/webhook",
	}, newDeploymentsLs(e))
}

func newDeploymentsLs(e *env) *cobra.Command {
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls OWNER/WORKER", Short: "List the deployments of a worker, the one in effect first", Args: cobra.ExactArgs(1),
		Long:    "Lists the kept deployments of a worker, the one in effect first. BY is what the deployer said of itself: nothing checks it.",
		Example: "  pinwheel deployments ls acme/webhook",
	}, func(ctx context.Context, args []string) error {
		show := func(list []events.Deployment, err error) error {
			if err == nil && asJSON {
				return printEach(e.out, list)
			}
			if err == nil {
				err = deployer{e}.printDeployments(list)
			}
			return err
		}
		if atDoor(e) {
			return withDoor(e, func(c *control.Client) error {
				d, err := c.Deployments(ctx, control.WorkerName{Worker: args[0]})
				return show(d.Deployments, err)
			})
		}
		return e.withWorker(ctx, args[0], func(s *deploy.Store, owner, name string) error {
			return show(s.Deployments(ctx, owner, name))
		})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line, the oldest deployment first")
	return c
}

func (e deployer) printDeployments(list []events.Deployment) error {
	t := e.table()
	fmt.Fprintln(t, "NUMBER\tVERSIONS\tAT\tBY\tMESSAGE")
	for _, d := range slices.Backward(list) {
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\n", d.Number, splitText(d), stamped(d.At), d.By, noteText(d))
	}
	return t.Flush()
}

// splitText is the split of a deployment for people.
func splitText(d events.Deployment) string {
	if len(d.Split) == 0 {
		return "none active"
	}
	parts := make([]string, len(d.Split))
	for i, s := range d.Split {
		parts[i] = fmt.Sprintf("%s %v %%", s.Version, s.Percent)
	}
	return strings.Join(parts, ", ")
}

// noteText is the message of a deployment, and how its rollout stands.
func noteText(d events.Deployment) string {
	r := d.Rollout
	switch {
	case r == nil:
		return d.Message
	case r.State == events.RolloutRunning:
		return strings.TrimSpace(fmt.Sprintf("%s [step %d of %d]", d.Message, r.Step+1, len(r.Steps)))
	case r.State == events.RolloutRolledBack:
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
func (c *changeFlags) note() (deploy.Note, error) {
	if err := events.CheckText("--message", c.message, events.MaxNote); err != nil {
		return deploy.Note{}, usage("%w", err)
	}
	return deploy.Note{By: whoAmI(), Message: c.message}, nil
}

func newPromoteCommand(e *env) *cobra.Command {
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
			if percent, err = events.ParsePercent(share); err != nil {
				return usage("%s: %w", args[1], err)
			}
		}
		return deployer{e}.redeploy(ctx, args[0], "deployments.promote", "promoted", flags.asJSON, func(s *deploy.Store) deploy.Change { return s.Promote(ctx, version, percent, force, note) },
			func(c *control.Client) (control.Redeployed, error) {
				return c.Promote(ctx, control.Promote{WorkerName: control.WorkerName{Worker: args[0]}, Version: version, Percent: percent, Force: force, Note: control.Note(note)})
			})
	}))
	c.Flags().BoolVar(&force, "force", false, "also when something that the version names is gone")
	return c
}

func newRollbackCommand(e *env) *cobra.Command {
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
		return deployer{e}.redeploy(ctx, args[0], "deployments.rollback", "rolled back", flags.asJSON, func(s *deploy.Store) deploy.Change { return s.Rollback(ctx, version, force, note) },
			func(c *control.Client) (control.Redeployed, error) {
				return c.Rollback(ctx, control.Rollback{WorkerName: control.WorkerName{Worker: args[0]}, Version: version, Force: force, Note: control.Note(note)})
			})
	}))
	c.Flags().BoolVar(&force, "force", false, "also when something that the version names is gone")
	return c
}

func newAliasCommand(e *env) *cobra.Command {
	return group(cobra.Command{
		Use: "alias", Short: "Name versions, so that events can ask for them by that name", Example: "  pinwheel alias set acme/webhook staging 13",
	}, newAliasSet(e), newAliasRm(e))
}

func newAliasSet(e *env) *cobra.Command {
	asJSON := false
	c := e.command(cobra.Command{
		Use: "set OWNER/WORKER NAME VERSION", Short: "Name a version", Args: cobra.ExactArgs(3),
		Long:    "Names a stored version. An event with the header Worker-Version: NAME runs in it, whatever is active. A name that exists is moved.",
		Example: "  pinwheel alias set acme/webhook staging 13\n  pinwheel send fetch acme/webhook --header 'Worker-Version: staging'",
	}, func(ctx context.Context, args []string) error {
		if err := events.CheckAlias(args[1]); err != nil {
			return usage("%w", err)
		}
		return deployer{e}.redeploy(ctx, args[0], "deployments.alias", "alias "+args[1]+" set:", asJSON, func(*deploy.Store) deploy.Change { return deploy.SetAlias(args[1], args[2]) }, aliasAtDoor(ctx, args[0], args[1], args[2]))
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

func newAliasRm(e *env) *cobra.Command {
	asJSON := false
	c := e.command(cobra.Command{
		Use: "rm OWNER/WORKER NAME", Short: "Remove the name of a version", Args: cobra.ExactArgs(2), Example: "  pinwheel alias rm acme/webhook staging",
	}, func(ctx context.Context, args []string) error {
		if err := events.CheckAlias(args[1]); err != nil {
			return usage("%w", err)
		}
		return deployer{e}.redeploy(ctx, args[0], "deployments.alias", "alias "+args[1]+" removed:", asJSON, func(*deploy.Store) deploy.Change { return deploy.SetAlias(args[1], "") }, aliasAtDoor(ctx, args[0], args[1], ""))
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

func aliasAtDoor(ctx context.Context, target, alias, version string) func(*control.Client) (control.Redeployed, error) {
	return func(c *control.Client) (control.Redeployed, error) {
		return c.SetAlias(ctx, control.Alias{WorkerName: control.WorkerName{Worker: target}, Alias: alias, Version: version})
	}
}

// redeploy changes the deployment of a worker and waits until that is in effect. door does so for an owner.
func (e deployer) redeploy(ctx context.Context, target, action, done string, asJSON bool, change func(*deploy.Store) deploy.Change,
	door func(*control.Client) (control.Redeployed, error),
) error {
	owner, name, err := events.ParseTarget(target)
	if err != nil {
		return usage("%w", err)
	}
	if atDoor(e.env) {
		return withDoor(e.env, func(c *control.Client) error {
			r, err := door(c)
			if err != nil {
				return err
			}
			taken, err := c.Await(ctx, target, r.Deployment)
			if err != nil {
				fmt.Fprintf(e.err, "pinwheel: the deployment of %s is stored, but %v\n", target, err)
			}
			return e.tellRedeployed(target, done, r.Deployment, r.Changed, taken, asJSON)
		})
	}
	c, err := e.connectFor(ctx, owner)
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.Workers(ctx)
	if err != nil {
		return err
	}
	d, changed, err := s.Redeploy(ctx, owner, name, change(s))
	if err != nil {
		return listsThem(err)
	}
	if changed {
		what := map[string]any{"worker": target, "split": splitText(d)}
		if d.Message != "" {
			what["message"] = d.Message
		}
		if len(d.Aliases) > 0 {
			what["aliases"] = d.Aliases
		}
		record(ctx, e.env, action, owner, what)
	}
	taken, err := c.Await(ctx, target, d)
	if err != nil {
		fmt.Fprintf(e.err, "pinwheel: the deployment of %s is stored, but %v\n", target, err)
	}
	return e.tellRedeployed(target, done, d, changed, taken, asJSON)
}

func (e deployer) tellRedeployed(target, done string, d events.Deployment, changed bool, taken *control.Activation, asJSON bool) error {
	if asJSON {
		told := deployedJSON{Worker: target, Changed: changed, Deployment: d}
		told.Active, told.Processes = taken.Counts()
		return json.NewEncoder(e.out).Encode(told)
	}
	if !changed {
		done = "unchanged"
	}
	return e.say("%s %s: %s, %s", done, target, splitText(d), taken)
}
