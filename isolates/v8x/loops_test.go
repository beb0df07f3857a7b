package v8x

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/endless"
)

var loops = flag.Int("loops", 20, "how many shapes of endless loops TestLoopsEnd runs; 0 = all")

const (
	// hot is how long a loop runs before it is ended. It is compiled by the top compiler long before.
	hot = 100 * time.Millisecond
	// patience is how long a loop may then run on. One without a check for termination runs for ever.
	patience = 5 * time.Minute
)

// knownLoops are those that the top compiler of V8 made endless, see docs/development/adr/0037.
var knownLoops = []string{
	`let a; for (;;) { a = new Array(1000).fill(1.5) }`,
	`let a; for (;;) { a = new Array(100).fill(1.5) }`,
	`const s = "the quick brown fox"; let r; for (;;) { r = s.startsWith("the q") }`,
}

// A compiler may remove the check for termination from a loop. Then nothing can end it, and its thread burns for ever.
// So the loops run in processes that can be killed.
func TestLoopsEnd(t *testing.T) { testLoops(t, AllCompilers, false) }

// The same is so in isolates whose code V8 does not optimize.
func TestLoopsEndInBaseline(t *testing.T) { testLoops(t, AllCompilers, true) }

// The same is so in processes that compile nothing.
func TestLoopsEndInterpreted(t *testing.T) { testLoops(t, Interpreter, false) }

func testLoops(t *testing.T, with Compilers, baseline bool) {
	t.Helper()
	// of a child; it runs each loop whose number is its share modulo shares
	const seedOf, shareOf = "V8X_LOOPS_SEED", "V8X_LOOPS_SHARE"
	shares := runtime.GOMAXPROCS(0)
	if text := os.Getenv(seedOf); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
		share, err := strconv.Atoi(os.Getenv(shareOf))
		require.NoError(t, err)
		require.NoError(t, Start(with))
		require.NoError(t, Snapshot(testFiles, nil))
		for i, s := range chosenLoops(seed) {
			if i%shares != share {
				continue
			}
			// What does not end takes a core from what comes after it.
			require.NoError(t, ends(s.Code, baseline), "%s, in %s", s.Body, s.Loop)
		}
		return
	}
	seed := rand.Uint64N(1e9)
	t.Logf("seed %d", seed)
	var children sync.WaitGroup
	for share := range shares {
		children.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-loops="+strconv.Itoa(*loops))
			cmd.Env = append(os.Environ(), seedOf+"="+strconv.FormatUint(seed, 10), shareOf+"="+strconv.Itoa(share))
			out, err := cmd.CombinedOutput()
			assert.NoError(t, err, "%s", out)
		})
	}
	children.Wait()
}

// chosenLoops are the known loops, and as many as were asked for of all others.
func chosenLoops(seed uint64) []endless.Shape {
	shapes := endless.All(seed, 3)
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(shapes), func(i, j int) { shapes[i], shapes[j] = shapes[j], shapes[i] })
	if *loops > 0 {
		shapes = shapes[:min(*loops, len(shapes))]
	}
	for _, code := range knownLoops {
		shapes = append(shapes, endless.Shape{Body: code, Code: code, Loop: "itself"})
	}
	return shapes
}

// ends runs a function's body on a thread of its own, and ends it. The error says why it could not be ended, and the
// thread is lost then.
func ends(code string, baseline bool) error {
	type made struct {
		iso *Isolate
		err error
	}
	running, over := make(chan made, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		iso := NewIsolate(Limits{Heap: 64 << 20, Buffers: 64 << 20})
		defer iso.Close()
		if baseline {
			iso.Baseline()
		}
		c, err := iso.NewContext(func([]byte) ([]byte, error) { return nil, nil })
		if err != nil {
			running <- made{nil, err}
			return
		}
		defer c.Close()
		if _, r := c.Module(Source{Name: "m.js", Text: "export default () => { " + code + " }"}); r.Err != nil {
			running <- made{nil, r.Err}
			return
		}
		running <- made{iso, nil}
		var call Call
		r := c.Call(call.Reset(50).Bytes(), nil)
		switch {
		case iso.Flags()&HeapLimit != 0:
			over <- errors.New("it was ended by the heap limit")
		case !r.Terminated:
			over <- errors.Join(errors.New("it ended by itself"), r.Err)
		default:
			over <- nil
		}
	}()
	m := <-running
	if m.err != nil {
		return m.err
	}
	wait, given := hot, time.After(hot+patience)
	for {
		select {
		case err := <-over:
			return err
		case <-given:
			return errors.New("it does not end")
		case <-time.After(wait):
			m.iso.Terminate() // again and again: before the call began it was without effect
			wait = 100 * time.Millisecond
		}
	}
}
