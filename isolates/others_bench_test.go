package isolates

import (
	"fmt"
	"testing"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// BenchmarkNeighbours alternates events of two workers of an owner, whose contexts share an isolate.
func BenchmarkNeighbours(b *testing.B) {
	p := newBench(b)
	list := make([]*workers.Worker, 2)
	for i := range list {
		list[i] = worker(fmt.Sprint("w", i), echoJSON)
		list[i].Limits.CPU = workers.Millis(10 * time.Second)
	}
	rush(b, p, list, 100, 64, 1, echoBody)
	const batch = 64
	b.ResetTimer()
	for range b.N {
		rush(b, p, list, batch, 64, 1, echoBody)
	}
	perEvent(b, b.N*batch)
}
