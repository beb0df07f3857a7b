package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// pauseCommands are the commands that keep events from starting.
type pauseCommands struct{ *env }

// What --ticks takes.
const (
	storeTicks = "store"
	skipTicks  = "skip"
)

func (e pauseCommands) pause() *cobra.Command {
	ticks, asJSON := storeTicks, false
	c := e.command(cobra.Command{
		Use: "pause OWNER[/WORKER]", Short: "Keep events of an owner or a worker from starting", Args: cobra.ExactArgs(1),
		Long: "Keeps events of an owner, or of one worker, from starting until 'pinwheel resume'. They are stored meanwhile. What runs\n" +
			"already may end. HTTP requests and calls of other workers get 503. The command returns when all processes know it.\n" +
			"Ticks of schedules are stored too, or left out with --ticks skip.",
		Example: "  pinwheel pause acme\n  pinwheel pause acme/mailer --ticks skip",
	}, func(ctx context.Context, args []string) error {
		t, err := pauseTarget(args[0])
		if err != nil {
			return err
		}
		if ticks != storeTicks && ticks != skipTicks {
			return usage("--ticks %q: it is %s or %s", ticks, storeTicks, skipTicks)
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			p, err := control.Ask(ctx, c, control.PauseWorkers, control.Pause{PauseTarget: t, SkipTicks: ticks == skipTicks})
			if err != nil {
				return err
			}
			return e.await(ctx, c, t, p, asJSON, args[0]+" is paused")
		})
	})
	c.Flags().StringVar(&ticks, "ticks", storeTicks, "ticks of schedules: store them for later, or skip them")
	jsonFlag(c, &asJSON)
	return c
}

func (e pauseCommands) resume() *cobra.Command {
	asJSON := false
	c := e.command(cobra.Command{
		Use: "resume OWNER[/WORKER]", Short: "Let events of a paused owner or worker start again", Args: cobra.ExactArgs(1),
		Long: "Lets events of a paused owner or worker start again, those that were stored meanwhile first. Resuming an owner leaves\n" +
			"workers paused that were paused one by one.",
		Example: "  pinwheel resume acme/mailer",
	}, func(ctx context.Context, args []string) error {
		t, err := pauseTarget(args[0])
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			p, err := control.Ask(ctx, c, control.ResumeWorkers, t)
			if err != nil {
				return err
			}
			text := args[0] + " is resumed"
			for _, other := range p.Paused {
				text += fmt.Sprintf("; %s is still paused", other.Target())
			}
			return e.await(ctx, c, t, p, asJSON, text)
		})
	})
	jsonFlag(c, &asJSON)
	return c
}

// await waits until all processes have taken up a change, and says so.
func (e pauseCommands) await(ctx context.Context, c *control.Client, t control.PauseTarget, p control.PausedOwner,
	asJSON bool, text string) error {
	processes, running, err := control.AwaitPaused(ctx, c, t, p)
	if err != nil {
		return err
	}
	fact := struct {
		control.PausedOwner
		Processes int `json:"processes"`
		Running   int `json:"running"`
	}{p, processes, running}
	in := processesText(processes)
	if processes == 0 {
		in = "the next process that starts"
	}
	return e.tell(asJSON, fact, "%s in %s; %d running", text, in, running)
}

func (e pauseCommands) paused() *cobra.Command {
	owner, asJSON := "", false
	c := e.command(cobra.Command{
		Use: "paused", Short: "List paused owners and workers", Args: cobra.NoArgs, Example: "  pinwheel paused",
	}, func(ctx context.Context, _ []string) error {
		return e.withFleet(ctx, func(c *control.Client) error {
			all, err := control.Ask(ctx, c, control.PausedAll, control.ListPaused{Owner: owner})
			if err != nil {
				return err
			}
			l := e.List(asJSON, "PAUSED", "SINCE", "TICKS", "BY")
			for _, p := range all.Paused {
				ticks, by := storeTicks, "operator"
				if p.SkipTicks {
					ticks = skipTicks
				}
				if p.ByOwner {
					by = "owner"
				}
				if err := l.Add(p, p.Target(), stamped(p.Since), ticks, by); err != nil {
					return err
				}
			}
			return l.End()
		})
	})
	c.Flags().StringVar(&owner, "owner", "", "only those of this owner")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

// pauseTarget reads OWNER or OWNER/WORKER.
func pauseTarget(text string) (t control.PauseTarget, err error) {
	t.Owner = text
	if owner, worker, both := strings.Cut(text, "/"); both {
		t.Owner, t.Worker = owner, worker
		if err := events.CheckName("worker", worker); err != nil {
			return t, usage("%w", err)
		}
	}
	if err := events.CheckName("owner", t.Owner); err != nil {
		return t, usage("%w", err)
	}
	return t, nil
}
