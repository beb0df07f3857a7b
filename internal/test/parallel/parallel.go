// Package parallel sets how many tests of a package run at once, and how much CPU time their handlers have then.
package parallel

import (
	"flag"
	"strconv"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

const (
	// Waits is for tests that wait for most of their time: for leases, elections, drains and beats.
	Waits = 8
	// Fleets is for tests of whole fleets that work more, or compare times.
	Fleets = 6
	// Isolates is for tests of V8 isolates. Some of their time is spent waiting, for timers and limits.
	Isolates = 4
)

// AtOnce lets n tests run at once, also with fewer processors, unless the command line sets the number. TestMain calls
// it.
func AtOnce(n int) {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		_ = flag.Set("test.parallel", strconv.Itoa(n))
	}
}

// RaiseCPU gives handlers that set no limit 500 ms of CPU time in place of 50. On a busy machine, and with the race
// detector, calls of the host take some of it. TestMain calls it.
func RaiseCPU() { workers.DefaultLimits.CPU = workers.Millis(500 * time.Millisecond) }
