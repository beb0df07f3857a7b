package cli_test

import (
	"os"
	"testing"

	"github.com/pinwheel-run/pinwheel/internal/process/cells/cell"
	"github.com/pinwheel-run/pinwheel/internal/process/modulecheck"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

func TestMain(m *testing.M) {
	cell.BeChild()
	modulecheck.BeChild()
	parallel.RaiseCPU()
	parallel.AtOnce(parallel.Waits)
	os.Exit(m.Run())
}
