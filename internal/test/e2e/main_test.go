package e2e

import (
	"os"
	"testing"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/modulecheck"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

func TestMain(m *testing.M) {
	natstest.BeServer()
	modulecheck.BeChild()
	parallel.RaiseCPU()
	if os.Getenv(asMain) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	parallel.AtOnce(parallel.Waits)
	os.Exit(m.Run())
}
