package cli

import (
	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/deploy/manifest"
)

func newSchemaCommand(e *env) *cobra.Command {
	return group(cobra.Command{Use: "schema", Short: "Print JSON Schemas, for editors and other tools"}, &cobra.Command{
		Use: "manifest", Short: "Print the JSON Schema of a manifest", Args: cobra.NoArgs,
		Long:    "Prints the JSON Schema (draft 2020-12) of Pinwheel's own manifest: the same for JSON and YAML.",
		Example: "  pinwheel schema manifest > pinwheel.schema.json",
		RunE: func(*cobra.Command, []string) error {
			_, err := e.out.Write(manifest.Schema())
			return err
		},
	})
}
