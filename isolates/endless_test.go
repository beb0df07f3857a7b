package isolates

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/endless"
)

// Loops of many shapes are ended by their CPU limit, and no thread burns on. The compilers of V8 have compiled them by
// then.
func TestEndlessLoops(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64N(1e9)
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	count := 3
	if wholeSuite {
		count = 100
	}
	shapes := endless.All(seed, 1)
	var chosen []endless.Shape
	for range count {
		chosen = append(chosen, shapes[random.IntN(len(shapes))], endless.Mixed(random.IntN))
	}
	shares := runtime.GOMAXPROCS(0)
	for share := range shares {
		t.Run(strconv.Itoa(share), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			for i := share; i < len(chosen); i += shares {
				b.endless(t, chosen[i])
			}
			require.Zero(t, b.pool.losses.parked.Load())
		})
	}
}

// Loops of WebAssembly end by the CPU limit too.
func TestEndlessModules(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64N(1e9)
	t.Logf("seed %d", seed)
	count := 6
	if wholeSuite {
		count = 300
	}
	chosen := endless.Modules(seed, count)
	shares := runtime.GOMAXPROCS(0)
	for share := range shares {
		t.Run(strconv.Itoa(share), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.pool.SetPolicy("acme", withWASM)
			for i := share; i < len(chosen); i += shares {
				m := chosen[i]
				code := "const m = new WebAssembly.Module(new Uint8Array(" + strings.ReplaceAll(fmt.Sprintf("%d", m.Bytes), " ", ",") +
					")); " + endless.Hot
				b.endless(t, endless.Shape{Body: m.Name, Loop: "WebAssembly", Code: code})
			}
			require.Zero(t, b.pool.losses.parked.Load())
		})
	}
}

// endless runs a loop for longer than any compiler takes, and ends it by its CPU limit.
func (b *bench) endless(t *testing.T, s endless.Shape) {
	t.Helper()
	w := worker("endless", "export default { task() { "+s.Code+" } }")
	w.Limits = workers.Limits{CPU: workers.Millis(200 * time.Millisecond), Wall: workers.Millis(patience), HeapMB: 64}
	o := b.start(w, task("null"))
	o.wait(t, o.ended)
	require.NotNil(t, o.end.Failure, "%s, in %s", s.Body, s.Loop)
	require.Equal(t, events.ReasonCPU, o.end.Failure.Reason, "%s, in %s: %s", s.Body, s.Loop, o.end.Failure)
	// V8 may end the turn so late that the thread is replaced.
	awaitRunaways(t, b.pool, "%s, in %s: its thread burns", s.Body, s.Loop)
}

// FuzzEndlessLoops looks for loops that V8 does not end.
func FuzzEndlessLoops(f *testing.F) {
	for _, text := range []string{"", "\x00\x02\x00\x00\x00\x0a\x01", "\x05\x03\x00\x81\x02\x00\x0d\x07\x01\x21\x03",
		"\x09\x01\x01\x10\x00"} {
		f.Add([]byte(text))
	}
	b := newBench(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		shape := endless.Mixed(endless.Bytes(text))
		t.Log(shape.Code)
		b.endless(t, shape)
	})
}
