package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// workerCommands are the commands about workers.
type workerCommands struct{ *env }

func (e workerCommands) root() *cobra.Command {
	return group(cobra.Command{
		Use: "workers", Short: "List, show, reset and remove deployed workers", Example: "  pinwheel workers ls --owner acme",
	}, e.ls(), e.show(), e.reset(), e.rm())
}

func (e workerCommands) ls() *cobra.Command {
	var owner string
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls", Short: "List workers with their active version", Args: cobra.NoArgs,
		Example: "  pinwheel workers ls --owner acme",
	}, func(ctx context.Context, _ []string) error {
		if err := control.CheckName("owner", owner); err != nil {
			return flagError(err)
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			p := e.List(asJSON, "WORKER", "VERSION", "HANDLERS", "DEPLOYED")
			r := control.ListWorkers{Owner: owner}
			return printPages(p, workerCells, func(limit int) ([]control.Worker, bool, error) {
				r.Limit = limit
				page, err := control.Ask(ctx, c, control.WorkersList, r)
				r.After = page.Next
				return page.Workers, page.Next != "", err
			})
		})
	})
	c.Flags().StringVar(&owner, "owner", "", "only workers of this owner")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

// flagError turns err of control into a usage error. Flags have the names of the request fields.
func flagError(err error) error {
	var wrong *control.Error
	if errors.As(err, &wrong) && wrong.Field != "" {
		return usage("--%w", err)
	}
	return usage("%w", err)
}

func (e workerCommands) show() *cobra.Command {
	var code, asJSON bool
	var version string
	c := e.command(cobra.Command{
		Use: "show OWNER/WORKER", Short: "Show a worker and its kept versions", Args: cobra.ExactArgs(1),
		Long:    "Shows the active version of a worker, or another kept version. Values of variables are not shown: they may be secrets.",
		Example: "  pinwheel workers show acme/webhook --code",
	}, func(ctx context.Context, args []string) error {
		if code && asJSON {
			return usage("--code and --json: choose one")
		}
		name, err := target(args[0])
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			if code {
				_, text, err := control.CodeOf(ctx, c, name.Worker, version)
				if err == nil {
					_, err = fmt.Fprint(e.Data(), text)
				}
				return listsVersions(err, name.Worker)
			}
			shown, err := control.Ask(ctx, c, control.VersionsShow, control.ShowVersion{WorkerName: name, Version: version})
			if err != nil {
				return listsVersions(err, name.Worker)
			}
			versions, err := control.Ask(ctx, c, control.VersionsList, name)
			if err != nil {
				return listsVersions(err, name.Worker)
			}
			if asJSON {
				shown.Version.Deployment, shown.Version.Versions = &versions.Deployment, versions.Versions
				return e.Object(shown.Version)
			}
			return printWorker(e.Terminal, &shown, versions)
		})
	})
	c.Flags().BoolVar(&code, "code", false, "print the bundled code and nothing else")
	c.Flags().StringVar(&version, "version", "", "this version: whole, its number, or an alias (default: the active one)")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

func (e workerCommands) reset() *cobra.Command {
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "reset OWNER/WORKER", Short: "End the contexts of a worker in all processes", Args: cobra.ExactArgs(1),
		Long: "Ends the contexts of a worker in all processes, of every version: what its module keeps in variables is gone, and the next event\n" +
			"evaluates the module again. Events that run now finish first. Nothing stored changes.\n" +
			"It needs PINWHEEL_CONTROL_TOKEN, or PINWHEEL_OWNER. Exit code 1: a process that is known did not answer.",
		Example: "  pinwheel workers reset acme/shop",
	}, func(ctx context.Context, args []string) error {
		name, err := target(args[0])
		if err != nil {
			return err
		}
		return e.withProcess(func(c *control.Client) error { return e.endContexts(ctx, c, name, asJSON) })
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

func (e workerCommands) endContexts(ctx context.Context, c *control.Client, name control.WorkerName,
	asJSON bool) error {
	done, err := control.Ask(ctx, c, control.WorkersReset, name)
	if errors.Is(err, nats.ErrNoResponders) && !e.isOwner() {
		return errors.New("no process of the fleet answers, so there are no contexts")
	}
	if err != nil {
		return err
	}
	if asJSON {
		err = e.Object(done)
	} else {
		err = e.Say("reset %s in %s", name.Worker, processesText(done.Processes))
	}
	if err == nil && len(done.Missing) > 0 {
		return fmt.Errorf("these processes did not answer, and may keep contexts: %s", strings.Join(done.Missing, ", "))
	}
	return err
}

func processesText(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}

func (e workerCommands) rm() *cobra.Command {
	var yes, asJSON bool
	c := e.command(cobra.Command{
		Use: "rm OWNER/WORKER", Short: "Remove a worker with all its versions", Args: cobra.ExactArgs(1),
		Long: "Removes a worker with all its versions. From then on fetch events for it are answered 404. Other events, and fetch events without a\n" +
			"requester, become dead letters.\n" +
			"On a terminal it asks first, and says how many events wait for the worker.",
		Example: "  pinwheel workers rm acme/webhook",
	}, func(ctx context.Context, args []string) error {
		name, err := target(args[0])
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error { return e.remove(ctx, c, name, yes, asJSON) })
	})
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	jsonFlag(c, &asJSON)
	return c
}

func (e workerCommands) remove(ctx context.Context, c *control.Client, name control.WorkerName,
	yes, asJSON bool) error {
	r := control.RemoveWorker{WorkerName: name}
	if !yes && config.IsTerminal(e.In) {
		r.DryRun = true
		would, err := control.Ask(ctx, c, control.WorkersRemove, r)
		if err != nil {
			return listsThem(err)
		}
		if !e.Asks(fmt.Sprintf("remove %s with %s? %s", name.Worker, counted(would.Versions, "version"),
			waitingText(would))) {
			return errors.New("nothing is removed")
		}
		r.DryRun = false
	}
	removed, err := control.Ask(ctx, c, control.WorkersRemove, r)
	if err != nil {
		return listsThem(err)
	}
	return e.tell(asJSON, removed, "removed %s; %s", name.Worker, waitingText(removed))
}

// waitingText says what happens to events when their worker is removed.
func waitingText(r control.RemovedWorker) string {
	if r.Stored+r.Parked+r.Delayed == 0 {
		return "no events wait for it"
	}
	return fmt.Sprintf("waiting for it: %d stored, %d parked, %d delayed; fetch events will be answered 404, tasks and scheduled events become dead letters",
		r.Stored, r.Parked, r.Delayed)
}

// counted formats a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
