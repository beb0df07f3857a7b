package isolates

import (
	"os"
	"testing"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

func TestMain(m *testing.M) {
	// A busy machine, and the race detector in calls of the host, take some of it.
	events.DefaultLimits.CPU = events.Millis(500 * time.Millisecond)
	parallel.AtOnce(parallel.Isolates)
	os.Exit(m.Run())
}
