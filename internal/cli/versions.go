package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

func newVersionsCommand(e *env) *cobra.Command {
	return group(cobra.Command{
		Use: "versions", Short: "List, show, compare and preview the versions of a worker", Example: "  pinwheel versions ls acme/webhook",
	}, newVersionsLs(e), newVersionsShow(e), newVersionsDiff(e), newVersionsPreview(e))
}

func newVersionsLs(e *env) *cobra.Command {
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls OWNER/WORKER", Short: "List the kept versions of a worker, the newest first", Args: cobra.ExactArgs(1),
		Long:    fmt.Sprintf("Lists the kept versions of a worker, the newest first: at most %d. SHARE is the share of the events that name no version.", deploy.History),
		Example: "  pinwheel versions ls acme/webhook",
	}, func(ctx context.Context, args []string) error {
		show := func(in events.Installation) error {
			if asJSON {
				return printEach(e.out, control.DescribeVersions(in))
			}
			return deployer{e}.printVersions(in)
		}
		if atDoor(e) {
			return withDoor(e, func(c *control.Client) error {
				versions, err := c.WorkerVersions(ctx, control.WorkerName{Worker: args[0]})
				if err != nil {
					return err
				}
				return show(describedVersions(versions))
			})
		}
		return e.withWorker(ctx, args[0], func(s *deploy.Store, owner, name string) error {
			in, err := s.Installation(ctx, owner, name)
			if err != nil {
				return err
			}
			return show(in)
		})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line, the oldest version first")
	return c
}

func (e deployer) printVersions(in events.Installation) error {
	t := e.table()
	fmt.Fprintln(t, "VERSION\tSHARE\tALIASES\tDEPLOYED\tTAG\tMESSAGE")
	for _, w := range byNewest(in) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", w.Version, percentText(in.Deployment.PercentOf(w.Version)),
			strings.Join(in.Deployment.AliasesOf(w.Version), " "), stamped(w.DeployedAt), w.Tag, w.Message)
	}
	return t.Flush()
}

// percentText is a share in a table.
func percentText(p float64) string {
	if p == 0 {
		return "-"
	}
	return fmt.Sprintf("%v %%", p)
}

// printEach prints one JSON object a line.
func printEach(out io.Writer, list any) error {
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	var rows []json.RawMessage
	if err := json.Unmarshal(text, &rows); err != nil {
		return err
	}
	for _, row := range rows {
		if _, err := fmt.Fprintf(out, "%s\n", row); err != nil {
			return err
		}
	}
	return nil
}

func newVersionsShow(e *env) *cobra.Command {
	c := newWorkersShow(e)
	c.Use, c.Short = "show OWNER/WORKER VERSION", "Show one version of a worker: the same as 'workers show --version'"
	c.Long, c.Example = "Shows one kept version of a worker. Values of variables are not shown: they may be secrets.", "  pinwheel versions show acme/webhook 12 --code"
	c.Args = cobra.ExactArgs(2)
	_ = c.Flags().MarkHidden("version")
	show := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := cmd.Flags().Set("version", args[1]); err != nil {
			return err
		}
		return show(cmd, args)
	}
	return c
}

func newVersionsDiff(e *env) *cobra.Command {
	return e.command(cobra.Command{
		Use: "diff OWNER/WORKER FROM [TO]", Short: "Compare the code and the manifests of two versions", Args: cobra.RangeArgs(2, 3),
		Long: "Prints the difference between two versions of a worker in the unified format: first of their manifests, then of their bundled code.\n" +
			"Without TO, FROM is compared with the active version. Values of variables are not shown: a changed value is shown as changed.\n" +
			"With PINWHEEL_OWNER it is not: values do not leave the fleet.",
		Example: "  pinwheel versions diff acme/webhook 12 13",
	}, func(ctx context.Context, args []string) error {
		to := ""
		if len(args) == 3 {
			to = args[2]
		}
		if atDoor(e) {
			return diffAtDoor(ctx, e, args[0], args[1], to)
		}
		return e.withWorker(ctx, args[0], func(s *deploy.Store, owner, name string) error {
			a, err := s.Get(ctx, owner, name, args[1])
			if err != nil {
				return err
			}
			b, err := s.Get(ctx, owner, name, to)
			if err != nil {
				return err
			}
			return deployer{e}.printDiff(a, b)
		})
	})
}

func (e deployer) printDiff(a, b *events.Worker) error {
	before, after := manifestText(a, b), manifestText(b, a)
	manifest := udiff.Unified(a.Version+"/manifest", b.Version+"/manifest", before, after)
	code := udiff.Unified(a.Version+"/"+a.File, b.Version+"/"+b.File, a.Code, b.Code)
	_, err := fmt.Fprint(e.data(), manifest, code)
	return err
}

// manifestText is what the manifest of w says, without the values of its variables. Of a value that is another one in
// the other version, it says that.
func manifestText(w, other *events.Worker) string {
	d := control.DescribeWorker(w)
	vars := map[string]string{}
	others := other.AllVars()
	for name, value := range w.AllVars() {
		vars[name] = "(not shown)"
		if was, ok := others[name]; ok && was != value {
			vars[name] = "(not shown; that of " + w.Version + ")"
		}
	}
	text, err := json.MarshalIndent(struct {
		Handlers []events.Kind     `json:"handlers"`
		Vars     map[string]string `json:"vars,omitempty"`
		Queues   map[string]string `json:"queues,omitempty"`
		events.Spec
	}{d.Handlers, vars, d.Queues, d.Spec}, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text) + "\n"
}

func newVersionsPreview(e *env) *cobra.Command {
	var good time.Duration
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "preview OWNER/WORKER VERSION", Short: "Print a link that shows one version to who has it", Args: cobra.ExactArgs(2),
		Long: "Prints a link to one version of a worker, active or not. Nobody can guess it, and it is good until the time that is printed; nothing takes it back before,\n" +
			"except an active version that is newer and does not say \"previews\": true in \"http\" of its manifest, and another PINWHEEL_SECRETS_KEY.\n" +
			"The version must say \"previews\": true in \"http\" itself. A process of the fleet signs the link, with a key that is derived from PINWHEEL_SECRETS_KEY, and records that.",
		Example: "  pinwheel versions preview acme/webhook 13\n  pinwheel versions preview acme/webhook next --for 2h",
	}, func(ctx context.Context, args []string) error {
		if good < time.Minute || good > control.MaxPreview {
			return usage("--for is %s: it is 1m to %s", good, control.MaxPreview)
		}
		if _, _, err := events.ParseTarget(args[0]); err != nil {
			return usage("%w", err)
		}
		show := func(c *control.Client) error {
			link, err := control.Preview(ctx, c, control.PreviewVersion{WorkerName: control.WorkerName{Worker: args[0]}, Version: args[1], For: good.String()})
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(e.out).Encode(link)
			}
			_, err = fmt.Fprintf(e.out, "%s\nversion %s of %s, until %s\n", link.URL, link.Version, link.Worker, stamped(link.Until))
			return err
		}
		if atDoor(e) {
			return withDoor(e, show)
		}
		return withFleet(e, show)
	})
	f := c.Flags()
	f.DurationVar(&good, "for", control.DefaultPreview, "how long the link is good, 1m to "+control.MaxPreview.String())
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// withFleet calls f with a client of the control endpoints.
func withFleet(e *env, f func(*control.Client) error) error {
	nc, err := e.dial("")
	if err != nil {
		return err
	}
	defer nc.Close()
	c := control.NewClient(nc, e.cfg.Prefix, e.cfg.ControlToken)
	c.Claim(claims())
	err = f(c)
	if errors.Is(err, nats.ErrNoResponders) {
		return fmt.Errorf("no process of the fleet answers: %w", err)
	}
	return err
}
