package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
)

// resourceCommands are the commands about what the fleet stores.
type resourceCommands struct{ *env }

func (e resourceCommands) root() *cobra.Command {
	return group(cobra.Command{
		Use: "resources", Short: "Change sizes, ages and copies of what the fleet stores", Example: "  pinwheel resources apply",
	}, e.apply())
}

func (e resourceCommands) apply() *cobra.Command {
	var yes, dryRun, asJSON bool
	c := e.command(cobra.Command{
		Use: "apply", Short: "Make the fleet's streams, consumers and buckets what this environment says", Args: cobra.NoArgs,
		Long: "Compares the fleet's streams, consumers and buckets with this binary and this environment, and prints what differs and what\n" +
			"a change would lose. With --yes it makes the changes. Processes never change sizes, ages, copies and the like of what\n" +
			"exists: they keep what the fleet has. So set the variables for this command and for all processes alike.\n\n" +
			"Processes that run take up new sizes within seconds. Restart them after other changes.",
		Example: "  PINWHEEL_DEAD_LETTER_BYTES=4GiB pinwheel resources apply\n  PINWHEEL_DEAD_LETTER_BYTES=4GiB pinwheel resources apply --yes",
	}, func(ctx context.Context, _ []string) error {
		if yes && dryRun {
			return usage("--yes and --dry-run exclude each other")
		}
		r, err := e.connect(ctx)
		if err != nil {
			return err
		}
		defer r.Close()
		var list []inventory.Change
		err = e.During("compares", func() (err error) {
			list, err = inventory.PlanChanges(ctx, r.NC, e.cfg)
			return err
		})
		if err != nil {
			return err
		}
		if err := e.printChanges(list, asJSON); err != nil {
			return err
		}
		switch {
		case len(list) == 0 || dryRun:
			return nil
		case !yes:
			return usage("nothing was changed: --yes makes these changes")
		}
		apply := func() error { return inventory.ApplyChanges(ctx, r.NC, e.cfg) }
		if err := e.During("makes the changes", apply); err != nil {
			return err
		}
		e.record(ctx, r, "resources.apply", "", map[string]any{"changes": list})
		return nil
	})
	c.Flags().BoolVar(&yes, "yes", false, "make the changes")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing, and succeed")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

func (e resourceCommands) printChanges(list []inventory.Change, asJSON bool) error {
	if asJSON {
		lines := json.NewEncoder(e.Out)
		for _, c := range list {
			if err := lines.Encode(c); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		fmt.Fprintln(e.Err, "pinwheel: nothing differs")
		return nil
	}
	l := e.List(false, "RESOURCE", "FIELD", "NOW", "WANTED", "VARIABLE", "LOST")
	for _, c := range list {
		lost := cmp.Or(c.Lost, "nothing")
		if c.Final {
			lost = "JetStream cannot change it in place: save the content and delete the resource"
		}
		err := l.Add(c, c.Resource, c.Field, cmp.Or(c.Now, "-"), cmp.Or(c.Wanted, "-"), cmp.Or(c.Variable, "-"), lost)
		if err != nil {
			return err
		}
	}
	return l.End()
}
