package e2e

import (
	"os"
	"testing"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

func TestMain(m *testing.M) {
	parallel.RaiseCPU()
	fleettest.BeChild()
	parallel.AtOnce(parallel.Waits)
	os.Exit(m.Run())
}
