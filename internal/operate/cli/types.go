package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/deploy/manifest"
)

func newSchemaCommand(e *env) *cobra.Command {
	return group(cobra.Command{Use: "schema", Short: "Print JSON Schemas, for editors and other tools"}, &cobra.Command{
		Use: "manifest", Short: "Print the JSON Schema of a manifest", Args: cobra.NoArgs,
		Long:    "Prints the JSON Schema (draft 2020-12) of Pinwheel's own manifest: the same for JSON and YAML.",
		Example: "  pinwheel schema manifest > pinwheel.schema.json",
		RunE: func(*cobra.Command, []string) error {
			_, err := e.Out.Write(manifest.Schema())
			return err
		},
	})
}

func newTypesCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "types", Short: "Print the types of handlers, for editors and tsc", Args: cobra.NoArgs,
		Long:    "Prints a file of TypeScript declarations: what a worker has beside the web platform. docs/guides/types.md says how to use it.",
		Example: "  pinwheel types > pinwheel.d.ts",
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(e.Out, bundle.Types())
			return err
		},
	}
}
