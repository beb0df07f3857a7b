// Package parallel sets how many tests of a package run at once.
package parallel

import (
	"flag"
	"strconv"
)

const (
	// Fleets is for tests of whole fleets. Most of their time is spent waiting, for leases, drains and beats.
	Fleets = 6
	// Streams is for tests of streams and clusters, without V8. They wait even more, for elections.
	Streams = 8
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
