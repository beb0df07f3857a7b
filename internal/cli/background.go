package cli

import (
	"os"
	"runtime"
)

// maxThreads is how many pinned threads a process can have in all.
const maxThreads = 64

// backgroundThreads is how many threads of a lower priority there are beside the others: as many up to 4, and an eighth of them
// on large machines, where heavy owners may have most of the others, too.
func backgroundThreads(cfg Config, threads int) int {
	n := cfg.BackgroundThreads
	if n < 0 {
		n = min(threads, max(4, threads/8))
	}
	return min(n, maxThreads-threads)
}

// leaveProcessors lets n more threads run Go code at once than there are processors, and returns what undoes that. A background thread that the
// system puts aside while it runs Go code has one of Go's processors in its hands: nobody else may wait for that.
func leaveProcessors(n int) (undo func()) {
	if n == 0 || os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(before + n)
	return func() { runtime.GOMAXPROCS(before) }
}
