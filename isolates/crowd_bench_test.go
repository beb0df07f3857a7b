package isolates

import (
	"fmt"
	"testing"
	"time"

	"github.com/pinwheel-run/pinwheel/events"
)

// BenchmarkNeighbours alternates events of two workers of an owner, whose contexts share an isolate.
func BenchmarkNeighbours(b *testing.B) {
	p := newBench(b)
	workers := make([]*events.Worker, 2)
	for i := range workers {
		workers[i] = worker(fmt.Sprint("w", i), echoJSON)
		workers[i].Limits.CPU = events.Millis(10 * time.Second)
	}
	rush(b, p, workers, 100, 64, 1, echoBody)
	const batch = 64
	b.ResetTimer()
	for range b.N {
		rush(b, p, workers, batch, 64, 1, echoBody)
	}
	perEvent(b, b.N*batch)
}
