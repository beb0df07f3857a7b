package fleet

import (
	"os"
	"testing"

	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

func TestMain(m *testing.M) {
	parallel.RaiseCPU()
	os.Exit(m.Run())
}
