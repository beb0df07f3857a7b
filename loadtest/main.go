package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/pinwheel-run/pinwheel/loadtest/machine"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
	"github.com/spf13/cobra"
)

func main() { os.Exit(run(os.Args[1:])) }

// run runs the command and returns the exit code.
func run(args []string) int {
	// CPU time that this process spends on its own garbage collection is not available to the fleet.
	debug.SetGCPercent(400)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newCommand()
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "loadtest:", err)
		return 1
	}
	return 0
}

func newCommand() *cobra.Command {
	o := defaultOptions()
	compare := false
	c := &cobra.Command{
		Use: "loadtest [--compare OLD.json NEW.json]", Short: "Measure a fleet from outside",
		SilenceUsage: true, SilenceErrors: true,
		Args: func(_ *cobra.Command, args []string) error {
			if compare && len(args) != 2 || !compare && len(args) != 0 {
				return fmt.Errorf("arguments %q: there are none, or --compare and two files", args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if compare {
				return report.Compare(cmd.OutOrStdout(), args[0], args[1])
			}
			cases, err := o.cases()
			if err != nil {
				return err
			}
			return measure(cmd.Context(), cmd.OutOrStdout(), o, cases)
		},
	}
	c.Flags().BoolVar(&compare, "compare", false, "compare two files that --json wrote, and measure nothing")
	o.scenarioFlags(c.Flags())
	o.commonFlags(c.Flags())
	c.AddCommand(newListCommand(), newReportCommand(), newPeersCommand(), newCurvesCommand(), newContentionCommand(),
		newRolloutCommand(), newHTTPCommand(), machine.NewServerCommand(), newFileServerCommand(), newEchoServerCommand(),
		newPinnedServerCommand(), newFloorCommand(), newSourcesCommand(), newBridgeCommand())
	return c
}

func newListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the scenarios", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return printScenarios(cmd.OutOrStdout()) },
	}
}

// newReportCommand makes tables, page and plots from earlier measurements.
func newReportCommand() *cobra.Command {
	o := defaultOptions()
	c := &cobra.Command{
		Use: "report FILE.json", Short: "Print what --json wrote, and make a page or plots of it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			r, err := report.Read(args[0], curveTexts())
			if err != nil {
				return err
			}
			return errors.Join(r.Print(cmd.OutOrStdout()), r.Write(o.Files))
		},
	}
	o.fileFlags(c.Flags())
	return c
}
