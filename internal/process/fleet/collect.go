package fleet

import (
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
)

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
