package fleet

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
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

// When events hold heldMuch bytes or more, they are a large part of Go's memory. Then gcPercent would let garbage grow
// to four times as much.
const (
	heldMuch = 32 << 20
	headroom = 256 << 20
)

// collectMore makes Go's garbage collector run sooner while events hold much memory. Go's memory then stays below twice
// what is in use. It is the Held function of isolates.Config.
func collectMore(held int64) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if held < heldMuch {
		debug.SetMemoryLimit(math.MaxInt64)
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	inUse := held
	if live[0].Value.Kind() == metrics.KindUint64 {
		inUse = max(held, int64(min(live[0].Value.Uint64(), math.MaxInt64/4)))
	}
	debug.SetMemoryLimit(headroom + 2*inUse)
}
