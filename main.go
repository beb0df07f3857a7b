// Command pinwheel runs JavaScript event handlers on NATS JetStream. The commands are in internal/operate/cli.
package main

import (
	"os"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
