package cli_test

import (
	"os"
	"testing"

	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

func TestMain(m *testing.M) {
	natstest.BeParallel()
	os.Exit(m.Run())
}
