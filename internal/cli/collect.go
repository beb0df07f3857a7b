package cli

import (
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
)

// From heldMuch on, what events hold in Go's memory is no small part of it any more, and gcPercent would let garbage come to four times as much.
const (
	heldMuch = 32 << 20
	headroom = 256 << 20
)

// collectMore has Go's collector come sooner while events hold much: its memory stays below twice what is in use. It is Held of isolates.Config.
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
		inUse = max(held, int64(min(live[0].Value.Uint64(), math.MaxInt64/4))) //nolint:gosec // bounded in this line
	}
	debug.SetMemoryLimit(headroom + 2*inUse)
}
