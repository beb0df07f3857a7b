package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/config"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

func newWorkersCommand(e *env) *cobra.Command {
	return group(cobra.Command{
		Use: "workers", Short: "List, show, reset and remove deployed workers", Example: "  pinwheel workers ls --owner acme",
	}, newWorkersLs(e), newWorkersShow(e), newWorkersReset(e), newWorkersRm(e))
}

func newWorkersLs(e *env) *cobra.Command {
	var owner string
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls", Short: "List workers with their active version", Args: cobra.NoArgs, Example: "  pinwheel workers ls --owner acme",
	}, func(ctx context.Context, _ []string) error {
		if err := control.CheckName("owner", owner); err != nil {
			return flagError(err)
		}
		if atDoor(e) {
			return listWorkersAtDoor(ctx, e, owner, asJSON)
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

// flagError turns err of control into a usage error. Flags have the names of the request fields.
func flagError(err error) error {
	var wrong *control.Error
	if errors.As(err, &wrong) && wrong.Field != "" {
		return usage("--%w", err)
	}
	return usage("%w", err)
}

func newWorkersShow(e *env) *cobra.Command {
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
		if atDoor(e) && (code || version != "") {
			return showVersionAtDoor(ctx, e, args[0], version, code, asJSON)
		}
		if atDoor(e) {
			return showWorkerAtDoor(ctx, e, args[0], asJSON)
		}
		return e.withWorker(ctx, args[0], func(s *deploy.Store, owner, name string) error {
			w, err := s.Get(ctx, owner, name, version)
			if err != nil {
				return err
			}
			if code {
				_, err := fmt.Fprint(e.data(), w.Code)
				return err
			}
			in, err := s.Installation(ctx, owner, name)
			if err != nil {
				return err
			}
			if asJSON {
				return e.printWorkerJSON(w, in)
			}
			return e.printWorker(w, in)
		})
	})
	c.Flags().BoolVar(&code, "code", false, "print the bundled code and nothing else")
	c.Flags().StringVar(&version, "version", "", "this version: whole, its number, or an alias (default: the active one)")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

func newWorkersReset(e *env) *cobra.Command {
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "reset OWNER/WORKER", Short: "End the contexts of a worker in all processes", Args: cobra.ExactArgs(1),
		Long: "Ends the contexts of a worker in all processes, of every version: what its module keeps in variables is gone, and the next event\n" +
			"evaluates the module again. Events that run now finish first. Nothing stored changes.\n" +
			"It needs PINWHEEL_CONTROL_TOKEN, or PINWHEEL_OWNER. Exit code 1: a process that is known did not answer.",
		Example: "  pinwheel workers reset acme/shop",
	}, func(ctx context.Context, args []string) error {
		if _, _, err := events.ParseTarget(args[0]); err != nil {
			return usage("%w", err)
		}
		reset := func(client *control.Client) error { return resetWorker(ctx, e, client, args[0], asJSON) }
		if atDoor(e) {
			return withDoor(e, reset)
		}
		nc, err := e.dial("")
		if err != nil {
			return err
		}
		defer nc.Close()
		client := control.NewClient(nc, e.cfg.Prefix, e.cfg.ControlToken)
		client.Claim(claims())
		return reset(client)
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

func resetWorker(ctx context.Context, e *env, client *control.Client, target string, asJSON bool) error {
	done, err := client.ResetWorker(ctx, control.WorkerName{Worker: target})
	if errors.Is(err, nats.ErrNoResponders) && !atDoor(e) {
		return errors.New("no process of the fleet answers, so there are no contexts")
	}
	if err != nil {
		return err
	}
	if asJSON {
		err = json.NewEncoder(e.out).Encode(done)
	} else {
		_, err = fmt.Fprintf(e.out, "reset %s in %s\n", target, processesText(done.Processes))
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

func newWorkersRm(e *env) *cobra.Command {
	var yes bool
	c := e.command(cobra.Command{
		Use: "rm OWNER/WORKER", Short: "Remove a worker with all its versions", Args: cobra.ExactArgs(1),
		Long: "Removes a worker with all its versions. From then on fetch events for it are answered 404. Other events, and fetch events without a\n" +
			"requester, become dead letters.\n" +
			"On a terminal it asks first, and says how many events wait for the worker.",
		Example: "  pinwheel workers rm acme/webhook",
	}, func(ctx context.Context, args []string) error {
		owner, name, err := events.ParseTarget(args[0])
		if err != nil {
			return usage("%w", err)
		}
		if atDoor(e) {
			return removeAtDoor(ctx, e, args[0], yes)
		}
		return e.removeWorker(ctx, owner, name, yes)
	})
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func (e *env) removeWorker(ctx context.Context, owner, name string, yes bool) error {
	c, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.Workers(ctx)
	if err != nil {
		return err
	}
	versions, err := s.Versions(ctx, owner, name)
	if err != nil && !errors.Is(err, deploy.ErrNotFound) { // Remove finds out whether an unreadable one exists
		return err
	}
	waiting, err := consumer.BacklogOf(ctx, c.JS, c.Subjects, owner, name)
	if err != nil {
		return err
	}
	if !yes && config.IsTerminal(e.in) && !e.asks(fmt.Sprintf("remove %s/%s with %s? %s", owner, name, counted(len(versions), "version"), waitingText(waiting))) {
		return errors.New("nothing is removed")
	}
	if err := s.Remove(ctx, owner, name); err != nil {
		return listsThem(err)
	}
	record(ctx, e, "workers.rm", owner, map[string]string{"worker": owner + "/" + name})
	_, err = fmt.Fprintf(e.out, "removed %s/%s; %s\n", owner, name, waitingText(waiting))
	return err
}

// waitingText says what happens to events when their worker is removed.
func waitingText(b consumer.Backlog) string {
	if b.Total() == 0 {
		return "no events wait for it"
	}
	return fmt.Sprintf("waiting for it: %d stored, %d parked, %d delayed; fetch events will be answered 404, tasks and scheduled events become dead letters",
		b.Stored, b.Parked, b.Delayed)
}

// counted formats a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// asks prints a question and reports whether the answer is yes.
func (e *env) asks(question string) bool {
	fmt.Fprint(e.err, question+" [y/N] ")
	answer, _ := bufio.NewReader(e.in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

func (e *env) withStore(ctx context.Context, f func(*deploy.Store) error) error {
	c, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.Workers(ctx)
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
		return listsThem(f(s, owner, name))
	})
}

// listsThem adds to a "worker not found" error how to list the workers.
func listsThem(err error) error {
	if errors.Is(err, deploy.ErrNotFound) {
		return fmt.Errorf("%w; 'pinwheel workers ls' lists them", err)
	}
	return err
}
