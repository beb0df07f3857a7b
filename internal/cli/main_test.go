package cli_test

import (
	"os"
	"testing"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

func TestMain(m *testing.M) {
	fleettest.RaiseCPU()
	parallel.AtOnce(parallel.Waits)
	os.Exit(m.Run())
}
