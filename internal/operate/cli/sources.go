package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/queue"
)

// sourceCommands are the commands about sources of workers.
type sourceCommands struct{ *env }

func (e sourceCommands) root() *cobra.Command {
	return group(cobra.Command{
		Use: "sources", Short: "List the sources of workers, and have them begin elsewhere",
		Example: "  pinwheel sources ls --owner acme",
	}, e.ls(), e.reset())
}

func (e sourceCommands) ls() *cobra.Command {
	var owner string
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls", Short: "List the sources of workers, with what they do and what waits there", Args: cobra.NoArgs,
		Long: "Lists streams, buckets, object stores and core subjects that start workers. STATE is what becomes of their messages:\n" +
			"reads; backs off (the owner has its share of the stream of events, or nothing is stored now); paused (the worker or\n" +
			"its owner); failing, with the error; no stream (it is not there); starts (no process has looked yet); removed (the\n" +
			"worker has it no more). It is the worst of all processes. OLDEST is how long the first message that waits has waited,\n" +
			"where NATS tells it.",
		Example: "  pinwheel sources ls --owner acme",
	}, func(ctx context.Context, _ []string) error {
		if err := control.CheckName("owner", owner); err != nil {
			return flagError(err)
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			p := e.List(asJSON, "WORKER", "N", "SOURCE", "FILTERS", "PENDING", "OLDEST", "UNACKED", "STATE")
			for after := ""; ; {
				page, err := queue.ListSources(ctx, c, owner, after, 100, true)
				if err != nil {
					return err
				}
				for _, s := range page.List {
					if err := p.Add(s, sourceCells(s, time.Now())...); err != nil {
						return err
					}
				}
				if after = page.Next; after == "" {
					return p.End()
				}
			}
		})
	})
	c.Flags().StringVar(&owner, "owner", "", "only those of this owner")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

func sourceCells(s queue.Source, now time.Time) []any {
	source, filters, n := s.Source, "-", "-"
	if s.Connection != "" {
		source += " of " + s.Connection
	}
	if len(s.Filters) > 0 {
		filters = strings.Join(s.Filters, " ")
	}
	if s.N >= 0 {
		n = strconv.Itoa(s.N)
	}
	pending, oldest, unacked := "-", "-", "-"
	if s.Known {
		pending, unacked = strconv.FormatUint(s.Pending, 10), strconv.Itoa(s.Unacked)
	}
	if !s.Oldest.IsZero() {
		oldest = now.Sub(s.Oldest).Truncate(time.Second).String()
	}
	return []any{s.Worker, n, source, filters, pending, oldest, unacked, s.Text()}
}

func (e sourceCommands) reset() *cobra.Command {
	var to string
	var n int
	var dryRun, yes, asJSON bool
	var c *cobra.Command
	c = e.command(cobra.Command{
		Use: "reset OWNER/WORKER --to TIME", Short: "Have sources of a worker begin at another message",
		Args: cobra.ExactArgs(1),
		Long: "Has the sources of a worker begin at a time, a sequence, the first message (all) or the next one (new). Messages\n" +
			"that come again run again. Without --yes it only says how many they are. It is recorded in the audit log.",
		Example: "  pinwheel sources reset acme/hello --to 2026-01-02T15:04:05Z\n  pinwheel sources reset acme/hello --to all --source 1 --yes",
	}, func(ctx context.Context, args []string) error {
		name, err := target(args[0])
		if err != nil {
			return err
		}
		if to == "" {
			return usage("--to says where the sources begin")
		}
		r := control.ResetSources{WorkerName: name, To: to, DryRun: dryRun || !yes}
		if c.Flags().Changed("source") {
			r.N = &n
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			done, err := control.Ask(ctx, c, control.SourcesReset, r)
			if err != nil {
				return err
			}
			verb := "reset"
			if done.DryRun {
				verb = "would reset"
			}
			for _, s := range done.Sources {
				if err := e.tell(asJSON, s, "%s source %d of %s, stream %s: %d messages come", verb, s.N, s.Worker, s.Stream,
					s.Pending); err != nil {
					return err
				}
			}
			if done.DryRun && !dryRun {
				return usage("nothing was changed: --yes resets them")
			}
			return nil
		})
	})
	c.Flags().StringVar(&to, "to", "", "where to begin: a `TIME` in RFC 3339, a sequence, all or new")
	c.Flags().IntVar(&n, "source", 0, "only the source with this number (pinwheel sources ls)")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only say how many messages come")
	c.Flags().BoolVar(&yes, "yes", false, "do it")
	jsonFlag(c, &asJSON)
	return c
}
