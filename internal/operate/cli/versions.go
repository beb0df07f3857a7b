package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// versionCommands are the commands about the versions of a worker.
type versionCommands struct{ *env }

func (e versionCommands) root() *cobra.Command {
	return group(cobra.Command{
		Use: "versions", Short: "List, show, compare and preview the versions of a worker", Example: "  pinwheel versions ls acme/webhook",
	}, e.ls(), e.show(), e.diff(), e.preview())
}

func (e versionCommands) ls() *cobra.Command {
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls OWNER/WORKER", Short: "List the kept versions of a worker, the newest first", Args: cobra.ExactArgs(1),
		Long:    fmt.Sprintf("Lists the kept versions of a worker, the newest first: at most %d. SHARE is the share of the events that name no version.", deploy.History),
		Example: "  pinwheel versions ls acme/webhook",
	}, func(ctx context.Context, args []string) error {
		name, err := target(args[0])
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			list, err := control.Ask(ctx, c, control.VersionsList, name)
			if err != nil {
				return listsThem(err)
			}
			if !asJSON {
				slices.Reverse(list.Versions)
			}
			p := e.List(asJSON, "VERSION", "SHARE", "ALIASES", "DEPLOYED", "TAG", "MESSAGE")
			for _, v := range list.Versions {
				err = cmp.Or(err, p.Add(v, v.Version, percentText(v.Percent), strings.Join(v.Aliases, " "), stamped(v.DeployedAt),
					v.Tag, v.Message))
			}
			return errors.Join(err, p.End())
		})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line, the oldest version first")
	return c
}

// percentText is a share in a table.
func percentText(p float64) string {
	if p == 0 {
		return "-"
	}
	return fmt.Sprintf("%v %%", p)
}

func (e versionCommands) show() *cobra.Command {
	c := workerCommands(e).show()
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

func (e versionCommands) diff() *cobra.Command {
	asJSON := false
	c := e.command(cobra.Command{
		Use: "diff OWNER/WORKER FROM [TO]", Short: "Compare the code and the manifests of two versions", Args: cobra.RangeArgs(2, 3),
		Long: "Prints the difference between two versions of a worker in the unified format: first of their manifests, then of their bundled code.\n" +
			"Without TO, FROM is compared with the active version. Values of variables are not shown: a changed value is shown as changed.\n" +
			"Values do not leave the fleet.",
		Example: "  pinwheel versions diff acme/webhook 12 13",
	}, func(ctx context.Context, args []string) error {
		to := ""
		if len(args) == 3 {
			to = args[2]
		}
		name, err := target(args[0])
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			a, err := versionOf(ctx, c, control.ShowVersion{WorkerName: name, Version: args[1]})
			if err != nil {
				return listsVersions(err, name.Worker)
			}
			b, err := versionOf(ctx, c, control.ShowVersion{WorkerName: name, Version: to, Compare: a.Version.Version})
			if err != nil {
				return listsVersions(err, name.Worker)
			}
			return e.printDiff(a, b, asJSON)
		})
	})
	jsonFlag(c, &asJSON)
	return c
}

// versionOf asks for a version with all of its code.
func versionOf(ctx context.Context, c *control.Client, r control.ShowVersion) (*control.ShownVersion, error) {
	shown, err := control.Ask(ctx, c, control.VersionsShow, r)
	if err != nil {
		return nil, err
	}
	_, shown.Code, err = control.CodeOf(ctx, c, r.Worker, shown.Version.Version)
	return &shown, err
}

func (e versionCommands) printDiff(a, b *control.ShownVersion, asJSON bool) error {
	before, after := manifestText(a, b.Differs), manifestText(b, b.Differs)
	from, to := a.Version.Version, b.Version.Version
	manifest := udiff.Unified(from+"/manifest", to+"/manifest", before, after)
	code := udiff.Unified(from+"/"+a.Version.File, to+"/"+b.Version.File, a.Code, b.Code)
	if asJSON {
		return e.Object(map[string]string{"from": from, "to": to, "manifest": manifest, "code": code})
	}
	_, err := fmt.Fprint(e.Data(), manifest, code)
	return err
}

// manifestText is what the manifest of a version says, without the values of its variables. Of those in differs, whose
// value is another one in the other version, it says that.
func manifestText(v *control.ShownVersion, differs []string) string {
	d, vars := v.Version, map[string]string{}
	for _, name := range d.Vars {
		vars[name] = "(not shown)"
		if slices.Contains(differs, name) {
			vars[name] = "(not shown; that of " + d.Version + ")"
		}
	}
	text, err := json.MarshalIndent(struct {
		Handlers []events.Kind     `json:"handlers"`
		Vars     map[string]string `json:"vars,omitempty"`
		Queues   map[string]string `json:"queues,omitempty"`
		workers.Spec
	}{d.Handlers, vars, d.Queues, d.Spec}, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text) + "\n"
}

func (e versionCommands) preview() *cobra.Command {
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
		name, err := target(args[0])
		if err != nil {
			return err
		}
		return e.withProcess(func(c *control.Client) error {
			link, err := control.Ask(ctx, c, control.VersionsPreview, control.PreviewVersion{WorkerName: name, Version: args[1],
				For: good.String()})
			if err != nil {
				return err
			}
			if asJSON {
				return e.Object(link)
			}
			return e.Say("%s\nversion %s of %s, until %s", link.URL, link.Version, link.Worker,
				stamped(link.Until))
		})
	})
	f := c.Flags()
	f.DurationVar(&good, "for", control.DefaultPreview, "how long the link is good, 1m to "+control.MaxPreview.String())
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
