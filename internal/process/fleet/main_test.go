package fleet_test

import (
	"os"
	"testing"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
	"github.com/pinwheel-run/pinwheel/internal/process/modulecheck"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

func TestMain(m *testing.M) {
	natstest.BeServer()
	modulecheck.BeChild()
	parallel.RaiseCPU()
	if fleet.IsCommand() {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	fleet.SetCommand(cli.MainWith)
	parallel.AtOnce(parallel.Waits)
	os.Exit(m.Run())
}
