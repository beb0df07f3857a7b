package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
)

func newWorkersCommand(e *env) *cobra.Command {
	return group(cobra.Command{
		Use: "workers", Short: "List, show and remove deployed workers", Example: "  pinwheel workers ls --owner acme",
	}, newWorkersLs(e), newWorkersShow(e), newWorkersRm(e))
}

func newWorkersLs(e *env) *cobra.Command {
	var owner string
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls", Short: "List workers with their active version", Args: cobra.NoArgs, Example: "  pinwheel workers ls --owner acme",
	}, func(ctx context.Context, _ []string) error {
		if err := checkFilter("owner", owner); err != nil {
			return err
		}
		return e.withStore(ctx, func(s *deploy.Store) error {
			ws, err := s.List(ctx, owner)
			if err != nil {
				return err
			}
			if asJSON {
				return e.printWorkersJSON(ws)
			}
			return e.printWorkers(ws)
		})
	})
	c.Flags().StringVar(&owner, "owner", "", "only workers of this owner")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

// checkFilter checks the value of a flag that chooses by name; empty stands for any.
func checkFilter(what, name string) error {
	if name == "" {
		return nil
	}
	if err := events.CheckName(what, name); err != nil {
		return usage("--%w", err)
	}
	return nil
}

func newWorkersShow(e *env) *cobra.Command {
	var code, asJSON bool
	var version string
	c := e.command(cobra.Command{
		Use: "show OWNER/WORKER", Short: "Show a worker and its kept versions", Args: cobra.ExactArgs(1),
		Long:    "Shows the active version of a worker, or another one that is kept. Values of variables are not shown: they may be secrets.",
		Example: "  pinwheel workers show acme/webhook --code",
	}, func(ctx context.Context, args []string) error {
		if code && asJSON {
			return usage("--code and --json: choose one")
		}
		return e.withWorker(ctx, args[0], func(s *deploy.Store, owner, name string) error {
			w, err := s.Get(ctx, owner, name, version)
			if err != nil {
				return err
			}
			if code {
				_, err := fmt.Fprint(e.out, w.Code)
				return err
			}
			versions, err := s.Versions(ctx, owner, name)
			if err != nil {
				return err
			}
			if asJSON {
				return e.printWorkerJSON(w, versions)
			}
			return e.printWorker(w, versions)
		})
	})
	c.Flags().BoolVar(&code, "code", false, "print the bundled code and nothing else")
	c.Flags().StringVar(&version, "version", "", "this version (default: the active one)")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

func newWorkersRm(e *env) *cobra.Command {
	return e.command(cobra.Command{
		Use: "rm OWNER/WORKER", Short: "Remove a worker with all its versions", Args: cobra.ExactArgs(1),
		Long:    "Removes a worker with all its versions. Fetch events for it are answered 404 from then on; tasks become dead letters.",
		Example: "  pinwheel workers rm acme/webhook",
	}, func(ctx context.Context, args []string) error {
		return e.withWorker(ctx, args[0], func(s *deploy.Store, owner, name string) error {
			if err := s.Remove(ctx, owner, name); err != nil {
				return err
			}
			_, err := fmt.Fprintf(e.out, "removed %s/%s\n", owner, name)
			return err
		})
	})
}

func (e *env) withStore(ctx context.Context, f func(*deploy.Store) error) error {
	c, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	s, err := c.store(ctx)
	if err != nil {
		return err
	}
	return f(s)
}

func (e *env) withWorker(ctx context.Context, target string, f func(s *deploy.Store, owner, name string) error) error {
	owner, name, err := events.ParseTarget(target)
	if err != nil {
		return usage("%w", err)
	}
	return e.withStore(ctx, func(s *deploy.Store) error {
		err := f(s, owner, name)
		if errors.Is(err, deploy.ErrNotFound) {
			return fmt.Errorf("%w; 'pinwheel workers ls' lists them", err)
		}
		return err
	})
}
