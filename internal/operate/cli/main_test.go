package cli_test

import (
	"os"
	"testing"

	"github.com/pinwheel-run/pinwheel/internal/process/modulecheck"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

func TestMain(m *testing.M) {
	modulecheck.BeChild()
	parallel.RaiseCPU()
	parallel.AtOnce(parallel.Waits)
	os.Exit(m.Run())
}
