package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/deploy"
)

func newTypesCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "types", Short: "Print the types of handlers, for editors and tsc", Args: cobra.NoArgs,
		Long:    "Prints a file of TypeScript declarations: what a worker has beside the web platform. docs/guides/types.md says how to use it.",
		Example: "  pinwheel types > pinwheel.d.ts",
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(e.out, deploy.Types())
			return err
		},
	}
}
