package isolates

import (
	"os"
	"testing"

	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

func TestMain(m *testing.M) {
	parallel.RaiseCPU()
	parallel.AtOnce(parallel.Isolates)
	os.Exit(m.Run())
}
