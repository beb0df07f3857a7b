package fleet

import (
	"os"
	"runtime"
	"sync"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// backgroundThreads is the number of threads with a lower priority, in addition to the others. There are as many as the
// others up to 4, and an eighth of them on large machines, where heavy owners may also have most of the others.
func backgroundThreads(cfg config.Config, threads int) int {
	n := cfg.BackgroundThreads
	if n < 0 {
		n = min(threads, max(4, threads/8))
	}
	return min(n, config.MaxThreads-threads)
}

// leaveProcessors lets n more threads run Go code at once than there are processors. It returns a function that undoes
// this. The system may suspend a background thread while it runs Go code. The thread then keeps one of Go's processors,
// and no other goroutine may have to wait for that one.
func leaveProcessors(n int) (undo func()) {
	if n == 0 || os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	addProcessors(n)
	return func() { addProcessors(-n) }
}

// changing serializes changes of the number of Go's processors: tests run several fleets in one process.
var changing sync.Mutex

func addProcessors(n int) {
	changing.Lock()
	defer changing.Unlock()
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + n)
}
